"""Precompiled headers for test builds: most of the time of compiling a test goes into the standard library and googletest.

Releases are compiled without them, which proves that every file includes what it uses.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@deps//:paths.bzl", "SYSTEM_INCLUDES")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = ctx.attr.copts,
    )
    arguments = ctx.actions.args()
    arguments.add_all(cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
        variables = variables,
    ))

    # No file of ours is in it, so that it does not name the sandbox in which it was made.
    for header in ctx.attr.headers:
        arguments.add_all(["-include", header])
    arguments.add_all(["-fmodules-strict-decluse", "-Xclang", "-fno-cxx-modules", "-Xclang", "-fno-pch-timestamp", "-fpch-instantiate-templates"])
    arguments.add_all(["-x", "c++-header", "-w", SYSTEM_INCLUDES[0] + "/version", "-o", ctx.outputs.out])
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = ACTION_NAMES.cpp_compile,
        ),
        arguments = [arguments],
        inputs = toolchain.all_files,
        outputs = [ctx.outputs.out],
        mnemonic = "PrecompileHeader",
        progress_message = "Precompiling headers into " + ctx.outputs.out.short_path,
    )

    # Whoever depends on it finds it among its headers.
    return [CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([ctx.outputs.out])))]

precompiled_header = rule(
    doc = "The standard headers named, compiled once with the flags of this configuration and `copts`.",
    implementation = _precompiled_header_impl,
    attrs = {
        "headers": attr.string_list(mandatory = True),
        "copts": attr.string_list(),
        "out": attr.output(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
