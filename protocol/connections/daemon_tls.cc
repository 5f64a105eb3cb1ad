#include "protocol/connections/daemon_tls.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/concat.h"
#include "common/io/read_file.h"

namespace deut {
namespace {

bool HasRole(const DaemonTlsOptions& options, Role role) {
  return std::ranges::find(options.roles, role) != options.roles.end();
}

std::string RoleFlags(const DaemonTlsOptions& options) {
  std::vector<std::string> flags;
  if (HasRole(options, Role::kTc)) flags.emplace_back("--tls_tc");
  if (HasRole(options, Role::kClient)) flags.emplace_back("--tls_clients");
  if (HasRole(options, Role::kReader)) flags.emplace_back("--tls_readers");
  if (HasRole(options, Role::kAdmin)) flags.emplace_back("--tls_admins");
  flags.emplace_back("--tls_rights");
  return absl::StrJoin(flags, ", ");
}

Result<Authorizer> LoadRights(const DaemonTlsOptions& options, Storage& storage) {
  std::vector<Grant> grants;
  for (const auto& [role, names] :
       {std::pair{Role::kReader, &options.readers}, std::pair{Role::kClient, &options.clients},
        std::pair{Role::kAdmin, &options.admins}, std::pair{Role::kTc, &options.tcs}}) {
    for (const std::string& name : *names) grants.push_back({.name = name, .role = role});
  }
  if (!options.rights_file.empty()) {
    Result<std::string> text = ReadFile(storage, options.rights_file);
    if (!text.ok()) {
      return Status(text.status().code(), Concat("--tls_rights ", options.rights_file, ": ", text.status().message()));
    }
    DEUT_ASSIGN_OR_RETURN(const std::vector<Grant> more,
                          Authorizer::ParseRights(Concat("--tls_rights ", options.rights_file), *text, options.roles));
    grants.insert(grants.end(), more.begin(), more.end());
  }
  // An empty name would match a certificate without a name.
  if (std::ranges::any_of(grants, [](const Grant& grant) { return grant.name.empty(); }))
    return DEUT_ERROR(kInvalidArgument, "an empty name has a role; names are separated by single commas");
  if (grants.empty()) {
    return DEUT_ERROR(kInvalidArgument, "nobody would be served: no name has a role; give some with ",
                      RoleFlags(options));
  }
  return Authorizer(std::move(grants));
}

}  // namespace

Result<std::unique_ptr<DaemonTls>> DaemonTls::Load(Runtime& runtime, const DaemonTlsOptions& options,
                                                   Storage& storage) {
  if (!options.allow.empty()) {
    return DEUT_ERROR(kInvalidArgument, "--tls_allow=", absl::StrJoin(options.allow, ","),
                      " is no longer taken by daemons: name each peer where it belongs, in ", RoleFlags(options),
                      HasRole(options, Role::kTc) ? "" : ", and the data component in --tls_dc");
  }
  std::unique_ptr<DaemonTls> tls(new DaemonTls(options, storage));
  // The signature comes before the files are read, so a file that changes meanwhile is read again.
  tls->loaded_signature_ = tls->seen_signature_ = tls->Signature();
  DEUT_ASSIGN_OR_RETURN(std::shared_ptr<const TlsIdentity> identity, LoadTls(options.files, storage));
  DEUT_ASSIGN_OR_RETURN(Authorizer rights, LoadRights(options, storage));
  DEUT_ASSIGN_OR_RETURN(tls->keys_, TlsKeys::Create(runtime, std::move(identity)));
  tls->access_ = std::make_shared<AccessControl>(runtime, std::move(rights));
  return tls;
}

std::string DaemonTls::Signature() const {
  std::string signature;
  const TlsOptions& files = options_.files;
  for (const std::string& path : {files.cert_file, files.key_file, files.ca_file, options_.rights_file}) {
    struct stat about{};
    if (path.empty() || stat(path.c_str(), &about) != 0) {
      signature += "-;";
    } else {
      ConcatTo(&signature, about.st_ino, " ", about.st_size, " ", about.st_mtim.tv_sec, " ", about.st_mtim.tv_nsec,
               ";");
    }
  }
  return signature;
}

Status DaemonTls::Reload() {
  seen_signature_ = Signature();
  const Status status = ReplaceAll();
  // Wrong content stays wrong until the files change. Any other error may pass, such as a shortage of descriptors, so
  // the next look retries.
  if (status.ok() || status == ErrorCode::kInvalidArgument || status == ErrorCode::kNotFound)
    loaded_signature_ = seen_signature_;
  return status;
}

Status DaemonTls::ReplaceAll() {
  DEUT_ASSIGN_OR_RETURN(std::shared_ptr<const TlsIdentity> identity, LoadTls(options_.files, storage_));
  DEUT_ASSIGN_OR_RETURN(Authorizer rights, LoadRights(options_, storage_));
  DEUT_RETURN_IF_ERROR(keys_->Replace(std::move(identity)));
  access_->Replace(std::move(rights));
  return Status::Ok();
}

Status DaemonTls::LookForChanges(bool* reloaded) {
  *reloaded = false;
  const std::string before = std::exchange(seen_signature_, Signature());
  if (seen_signature_ == loaded_signature_ || seen_signature_ != before) return Status::Ok();
  const Status status = Reload();
  *reloaded = status.ok();
  const std::string reported = std::exchange(reported_, status.ok() ? std::string() : status.ToString());
  return reported_ == reported ? Status::Ok() : status;
}

}  // namespace deut
