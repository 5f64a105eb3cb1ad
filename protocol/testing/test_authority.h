// TestAuthority: a certificate authority made during the test, for tests of TLS. Thread-safety: none. Errors end the
// test process.
#ifndef PROTOCOL_TESTING_TEST_AUTHORITY_H_
#define PROTOCOL_TESTING_TEST_AUTHORITY_H_

#include <memory>
#include <string>
#include <vector>

#include "protocol/connections/tls.h"

namespace deut::testing {

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  std::string ca_pem() const;

  struct Issued {
    std::string cert_pem;
    std::string key_pem;
  };
  // `dns_names` become subject alternative names.
  Issued Issue(const std::string& common_name, const std::vector<std::string>& dns_names);

  // Returns an identity with a certificate from this authority.
  std::shared_ptr<const TlsIdentity> Identity(const std::string& common_name, const std::vector<std::string>& dns_names,
                                              const std::vector<std::string>& allow);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace deut::testing

#endif  // PROTOCOL_TESTING_TEST_AUTHORITY_H_
