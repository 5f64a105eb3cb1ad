"""The rules that BUILD files of this project use in place of the native ones.

They add the warnings, the layering check and private visibility, and make tests state their size.
"""

load("@deps//:paths.bzl", "DEPS_INCLUDE")

# Our own code compiles without a warning. Generated code and the libraries' headers are exempt.
_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wextra-semi",
    "-Wimplicit-fallthrough",
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
    "-Wshadow",
    "-Wshorten-64-to-32",
    "-Wsuggest-override",
    "-Wthread-safety",
    "-Wunreachable-code",
    "-Wvla",
]

_PRIVATE = ["//visibility:private"]

# The code of a test itself is compiled in a hurry: it is most of what there is to compile, and what it
# measures is in libraries. A test that counts on the optimizer says `optimized = True`.
TEST_COPTS = ["-O0"]

# Builds for tests take the standard headers precompiled (precompiled_header.bzl).
def _precompiled(name):
    return struct(
        deps = select({
            "//bazel:test_build": ["//bazel:" + name],
            "//conditions:default": [],
        }),
        copts = select({
            "//bazel:test_build": ["-include-pch", "$(BINDIR)/bazel/%s.pch" % name],
            "//conditions:default": [],
        }),
    )

_TEST_SIZES = ["small", "medium", "large", "enormous"]

def _settings(kwargs, headers = "standard_headers"):
    """Adds what all C++ targets of ours have in common to the arguments of a native rule."""
    precompiled = _precompiled(headers)
    kwargs["copts"] = _WARNINGS + kwargs.get("copts", []) + precompiled.copts
    kwargs["deps"] = kwargs.get("deps", []) + precompiled.deps
    kwargs["features"] = ["layering_check"] + kwargs.get("features", [])
    if kwargs.get("visibility") == None:
        kwargs["visibility"] = _PRIVATE
    return kwargs

def deut_cc_library(name, **kwargs):
    """A C++ library; private to its package unless `visibility` says more."""
    native.cc_library(name = name, **_settings(kwargs))

# The system's heap, in place of ours.
SYSTEM_MALLOC = "@bazel_tools//tools/cpp:malloc"

def deut_cc_binary(name, malloc = "//bazel:malloc", **kwargs):
    """A program, with the heap that all of ours have (`malloc`)."""
    native.cc_binary(name = name, malloc = malloc, **_settings(kwargs))

def deut_cc_test(name, size, deps = [], own_main = False, optimized = False, **kwargs):
    """A googletest program.

    Args:
      name: ends in _test.
      size: small (60 s), medium (300 s), large (900 s); `timeout` overrides the time.
      deps: what it tests; googletest comes by itself.
      own_main: True if the test has its own main().
      optimized: True if the test's own code must be compiled like the rest, as in a litmus test.
      **kwargs: as for cc_test. The tag `tsan` makes it part of `scripts/test tsan`,
        `integration` takes it out of the unit tests and into `scripts/test integration`.
    """
    if size not in _TEST_SIZES:
        fail("%s: size is one of %s" % (name, ", ".join(_TEST_SIZES)))
    if not name.endswith("_test"):
        fail("%s: the name of a test ends in _test" % name)
    kwargs["deps"] = deps + ["@deps//:gtest" if own_main else "@deps//:gtest_main"]
    if not optimized:
        kwargs["copts"] = kwargs.get("copts", []) + TEST_COPTS
    native.cc_test(
        name = name,
        size = size,
        **_settings(kwargs, "standard_headers" if optimized else "test_headers")
    )

def deut_cc_benchmark(name, deps = [], **kwargs):
    """A google-benchmark program with the library's main(); built and run by hand."""
    native.cc_binary(
        name = name,
        testonly = True,
        malloc = "//bazel:malloc",
        **_settings(dict(kwargs, deps = deps + ["@deps//:benchmark"], tags = kwargs.get("tags", []) + ["benchmark", "manual"]))
    )

def deut_cc_fuzz_test(name, srcs, deps = [], corpus = [], size = "small", runs = 20000, **kwargs):
    """A test with `LLVMFuzzerTestOneInput`.

    With --config=fuzz it is a libFuzzer program that searches for a while; otherwise a test that plays
    the files of `corpus` and `runs` mutations of them, from a fixed seed.
    """
    settings = _settings(dict(kwargs, deps = deps, tags = kwargs.get("tags", []) + ["fuzz"]))
    files = ["$(location %s)" % file for file in corpus]
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs + select({
            "//bazel:fuzzer": [],
            "//conditions:default": ["//bazel:fuzz_main.cc"],
        }),
        data = corpus,
        args = select({
            # Files given as arguments would only be played.
            "//bazel:fuzzer": ["-seed_inputs=" + ",".join(files)] if files else [],
            "//conditions:default": ["--runs=%d" % runs] + files,
        }),
        # Debian's libFuzzer is built with libstdc++.
        linkopts = select({
            "//bazel:fuzzer": ["-fsanitize=fuzzer", "-lstdc++"],
            "//conditions:default": [],
        }),
        **settings
    )

def _sources_of(label):
    """The label of the .proto files behind a deut_proto_library."""
    if ":" in label:
        return label + "_protos"
    return "%s:%s_protos" % (label, label.split("/")[-1])

def deut_proto_library(name, srcs, deps = [], grpc = False, visibility = None, **kwargs):
    """C++ classes of .proto files, and service stubs if `grpc`.

    Args:
      name: target name.
      srcs: .proto files of this package; they import each other by path from the root.
      deps: deut_proto_library targets that they import.
      grpc: True to generate and link the services too. What only needs the classes, without gRPC, then depends on `name`_messages.
      visibility: private unless given.
      **kwargs: as for cc_library.
    """
    visibility = visibility or _PRIVATE
    native.filegroup(
        name = name + "_protos",
        srcs = srcs + [_sources_of(dep) for dep in deps],
        visibility = visibility,
    )
    kinds = [".pb"] + ([".grpc.pb"] if grpc else [])
    stems = [src[:-len(".proto")] for src in srcs]
    command = "/usr/bin/protoc -I. -I%s --cpp_out=$(RULEDIR)/%s" % (DEPS_INCLUDE, _up())
    if grpc:
        command += " --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(RULEDIR)/%s" % _up()
    native.genrule(
        name = name + "_generated",
        srcs = [name + "_protos"],
        outs = [stem + kind + end for stem in stems for kind in kinds for end in [".h", ".cc"]],
        cmd = command + " " + " ".join(["%s/%s" % (native.package_name(), src) for src in srcs]),
        message = "Generating C++ from .proto",
    )
    headers = [stem + ".pb.h" for stem in stems]
    messages = name + "_messages" if grpc else name
    native.cc_library(
        name = messages,
        srcs = [stem + ".pb.cc" for stem in stems],
        hdrs = headers,
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["@deps//:protobuf"],
        **kwargs
    )
    if grpc:
        native.cc_library(
            name = name,
            srcs = [stem + ".grpc.pb.cc" for stem in stems],
            hdrs = headers + [stem + ".grpc.pb.h" for stem in stems],
            copts = ["-w"],
            visibility = visibility,
            deps = deps + [":" + messages, "@deps//:grpc"],
            **kwargs
        )

def _up():
    """From the output folder of this package to that of the root."""
    return "/".join([".."] * len(native.package_name().split("/")))
