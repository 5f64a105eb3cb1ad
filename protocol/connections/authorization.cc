#include "protocol/connections/authorization.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/concat.h"

namespace deut {
namespace {

struct Call {
  std::string_view path;
  std::vector<Role> roles;
};

const std::vector<Call>& Calls() {
  static const std::vector<Call> calls = {
      {"/deuteronomy.v1.TransactionService/Session", {Role::kReader, Role::kClient}},
      {"/deuteronomy.v1.TransactionService/OneShots", {Role::kReader, Role::kClient}},
      {"/deuteronomy.v1.TransactionService/AskOutcome", {Role::kClient}},
      {"/deuteronomy.v1.TransactionService/OpenTable", {Role::kReader, Role::kClient, Role::kAdmin}},
      {"/deuteronomy.v1.TransactionService/CreateTable", {Role::kAdmin}},
      {"/deuteronomy.v1.TransactionService/DropTable", {Role::kAdmin}},
      {"/deuteronomy.v1.TransactionService/ListTables", {Role::kReader, Role::kClient, Role::kAdmin}},
      {"/deuteronomy.v1.TransactionService/GetStatus", {Role::kAdmin}},
      {"/deuteronomy.v1.TransactionService/DropCaches", {Role::kAdmin}},
      {"/deuteronomy.v1.DataComponent/Hello", {Role::kTc}},
      {"/deuteronomy.v1.DataComponent/Data", {Role::kTc}},
      {"/deuteronomy.v1.DataComponent/Scan", {Role::kTc}},
      {"/deuteronomy.v1.DataComponent/ApplyLog", {Role::kTc}},
      {"/deuteronomy.v1.DataComponent/Partition", {Role::kTc}},
      {"/deuteronomy.v1.DataComponent/Tables", {Role::kTc}},
      {"/deuteronomy.v1.DataComponent/Counters", {Role::kTc, Role::kAdmin}},
  };
  return calls;
}

std::string_view FlagOf(Role role) {
  switch (role) {
    case Role::kReader:
      return "--tls_readers";
    case Role::kClient:
      return "--tls_clients";
    case Role::kAdmin:
      return "--tls_admins";
    case Role::kTc:
      return "--tls_tc";
  }
  return "--tls_rights";
}

// A # begins a comment only at the beginning of a word, because names, URIs and prefixes may contain it elsewhere.
std::vector<std::string> WordsOf(std::string_view line) {
  constexpr std::string_view kSpaces = " \t\r";
  std::vector<std::string> words;
  for (;;) {
    const size_t begin = line.find_first_not_of(kSpaces);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    if (line.front() == '#') return words;
    const std::string_view word = line.substr(0, line.find_first_of(kSpaces));
    words.emplace_back(word);
    line.remove_prefix(word.size());
  }
}

bool Gives(Role role, TableAccess access) {
  switch (access) {
    case TableAccess::kRead:
      return role == Role::kReader || role == Role::kClient;
    case TableAccess::kWrite:
      return role == Role::kClient;
    case TableAccess::kMake:
      return role == Role::kAdmin;
  }
  return false;
}

}  // namespace

std::string_view NameOf(Role role) {
  switch (role) {
    case Role::kReader:
      return "reader";
    case Role::kClient:
      return "client";
    case Role::kAdmin:
      return "admin";
    case Role::kTc:
      return "tc";
  }
  return "none";
}

bool Principal::Has(Role role) const {
  return std::ranges::any_of(grants_, [role](const Grant& grant) { return grant.role == role; });
}

bool Principal::May(TableAccess access, std::string_view table) const {
  return std::ranges::any_of(grants_, [&](const Grant& grant) {
    return Gives(grant.role, access) &&
           (grant.prefixes.empty() ||
            std::ranges::any_of(grant.prefixes, [&](const std::string& prefix) { return table.starts_with(prefix); }));
  });
}

bool Principal::MayEverywhere(TableAccess access) const {
  return std::ranges::any_of(grants_,
                             [&](const Grant& grant) { return Gives(grant.role, access) && grant.prefixes.empty(); });
}

Result<std::vector<Grant>> Authorizer::ParseRights(const std::string& path, std::string_view text,
                                                   const std::vector<Role>& roles) {
  std::vector<Grant> grants;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::vector<std::string> words = WordsOf(line);
    if (words.empty()) continue;
    if (words.size() == 1) {
      return DEUT_ERROR(kInvalidArgument, path, ": line ", number, ": \"", words[0],
                        "\" has no role; a line is NAME ROLE [TABLE_PREFIX...]");
    }
    const auto role = std::ranges::find(roles, words[1], [](Role each) { return NameOf(each); });
    if (role == roles.end()) {
      return DEUT_ERROR(kInvalidArgument, path, ": line ", number, ": \"", words[1],
                        "\" is no role here; the roles are ",
                        absl::StrJoin(roles, ", ", [](std::string* out, Role each) { out->append(NameOf(each)); }));
    }
    if (*role == Role::kTc && words.size() > 2) {
      return DEUT_ERROR(kInvalidArgument, path, ": line ", number,
                        ": the role tc takes no table prefixes, a transaction component needs all tables");
    }
    grants.push_back({.name = words[0], .role = *role, .prefixes = {words.begin() + 2, words.end()}});
  }
  return grants;
}

bool Authorizer::Covers(const Authorizer& other) const {
  return std::ranges::all_of(other.grants_,
                             [&](const Grant& grant) { return std::ranges::find(grants_, grant) != grants_.end(); });
}

Principal Authorizer::Find(const std::vector<std::string>& names) const {
  std::vector<Grant> found;
  for (const Grant& grant : grants_) {
    if (std::ranges::find(names, grant.name) != names.end()) found.push_back(grant);
  }
  return Principal(std::move(found));
}

std::vector<Role> RolesForCall(std::string_view path) {
  const auto call = std::ranges::find(Calls(), path, &Call::path);
  return call == Calls().end() ? std::vector<Role>() : call->roles;
}

Status Authorizer::CheckCall(std::string_view path, const std::vector<std::string>& names) const {
  const Principal principal = Find(names);
  if (!principal.has_any()) {
    return DEUT_ERROR(kPermissionDenied, "certificate refused: it carries the names [", absl::StrJoin(names, ", "),
                      "], and none of them has a role here; the server's flags --tls_... and --tls_rights give them");
  }
  const std::vector<Role> roles = RolesForCall(path);
  if (roles.empty() || std::ranges::any_of(roles, [&](Role role) { return principal.Has(role); })) return Status::Ok();
  return DEUT_ERROR(kPermissionDenied, "certificate refused: \"", principal.name(), "\" may not call ",
                    path.substr(path.rfind('/') + 1), ", which takes a name in ",
                    absl::StrJoin(roles, " or ", [](std::string* out, Role role) { out->append(FlagOf(role)); }));
}

}  // namespace deut
