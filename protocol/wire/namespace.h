// The messages of this folder's .proto files are in `deuteronomy::v1`, the package that has their version. Our code calls
// that namespace `wire`.
#ifndef PROTOCOL_WIRE_NAMESPACE_H_
#define PROTOCOL_WIRE_NAMESPACE_H_

namespace deuteronomy::v1 {}

namespace deut {
namespace wire = ::deuteronomy::v1;
}  // namespace deut

#endif  // PROTOCOL_WIRE_NAMESPACE_H_
