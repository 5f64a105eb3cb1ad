"""External repositories that need no network."""

def _inline_repository_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    for path, content in ctx.attr.files.items():
        ctx.file(path, content)

inline_repository = repository_rule(
    doc = "A repository whose few files are written in WORKSPACE.",
    implementation = _inline_repository_impl,
    attrs = {"files": attr.string_dict(mandatory = True)},
)

# Where the compiler finds headers that are not ours, besides the libraries' own folder.
_SYSTEM_INCLUDES = [
    "/usr/lib/llvm-19/include/c++/v1",
    "/usr/lib/llvm-19/lib/clang/19",
    "/usr/include",
]

def _deps_repository_impl(ctx):
    root = ctx.os.environ.get("DEUT_DEPS", "")
    if not root:
        fail("DEUT_DEPS is not set: run scripts/setup, which writes it to .bazelrc.local")
    include = root + "/plain/include"

    # A folder of lib/ that is named for our patches: other patches are another link line, and nothing is compiled anew.
    grpc = ctx.os.environ.get("DEUT_GRPC", "")
    absl = sorted([
        path.basename
        for path in ctx.path(root + "/plain/lib").readdir()
        if path.basename.startswith("libabsl_") and path.basename.endswith(".a")
    ])

    # A module map in which everything that is not ours is one module: with it the layering check
    # can be strict, that is, refuse every other header that no direct dependency offers.
    modules = ["module \"crosstool\" [system] {"]
    for number, folder in enumerate(_SYSTEM_INCLUDES + [include]):
        modules.append("  module \"dir%d\" [system] { umbrella \"%s\" }" % (number, folder))
    modules.append("}")

    ctx.file("paths.bzl", "\n".join([
        "DEPS = %r" % root,
        "DEPS_INCLUDE = %r" % include,
        "SYSTEM_INCLUDES = %r" % _SYSTEM_INCLUDES,
        "ABSL_ARCHIVES = %r" % absl,
        "GRPC_FOLDER = %r" % (grpc + "/" if grpc else ""),
        "",
    ]))
    ctx.file("system.modulemap", "\n".join(modules) + "\n")
    ctx.symlink(ctx.attr._build_file, "BUILD")

deps_repository = repository_rule(
    doc = "The libraries that scripts/setup built, found by the environment variable DEUT_DEPS.",
    implementation = _deps_repository_impl,
    attrs = {"_build_file": attr.label(default = "//bazel:deps.BUILD", allow_single_file = True)},
    environ = ["DEUT_DEPS", "DEUT_GRPC"],
    local = True,
)
