// Lines of verbose logs, in the spellings of several versions: which fields are found, what becomes
// a problem and what does not, and that equal calls are one group.
#include "onednn/verbose_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace convgrad::onednn {
namespace {

using Kind = VerboseLine::Kind;

VerboseLine Parse(const std::string& line) {
  Result<VerboseLine> parsed = ParseVerboseLine(line);
  EXPECT_TRUE(parsed.ok()) << line << "\n" << parsed.status().message();
  return parsed.ok() ? *std::move(parsed) : VerboseLine();
}

std::string ErrorOf(const std::string& line) {
  const Result<VerboseLine> parsed = ParseVerboseLine(line);
  EXPECT_FALSE(parsed.ok()) << line;
  return parsed.status().message();
}

ReplayedCase Replayed(const std::string& line) {
  Result<ReplayedCase> replayed = MakeReplayedCase(Parse(line).call);
  EXPECT_TRUE(replayed.ok()) << line << "\n" << replayed.status().message();
  return replayed.ok() ? *std::move(replayed) : ReplayedCase();
}

std::string Refusal(const std::string& line) {
  const Result<ReplayedCase> replayed = MakeReplayedCase(Parse(line).call);
  EXPECT_FALSE(replayed.ok()) << line;
  return replayed.status().message();
}

using Texts = std::vector<std::string>;

// A line of version 3 with these parts.
std::string Line(const std::string& pass, const std::string& tensors,
                 const std::string& attributes = "",
                 const std::string& descriptor = "mb2_ic8oc4_ih5oh5kh3sh1dh0ph1_iw5ow5kw3sw1dw0pw1",
                 const std::string& primitive = "convolution") {
  return "onednn_verbose,v1,primitive,exec,cpu," + primitive + ",jit:avx2," + pass + "," + tensors +
         "," + attributes + ",alg:convolution_direct," + descriptor + ",0.25";
}

constexpr const char* kPlain =
    "src:f32::blocked:abcd::f0 wei:f32::blocked:abcd::f0 bia:undef::undef::: "
    "dst:f32::blocked:abcd::f0";

// --- lines --------------------------------------------------------------------------------------

TEST(Line, FieldsOfSeveralVersions) {
  const std::string old_tensors =
      "src_f32::blocked:acdb:f0 wei_f32::blocked:cdba:f0 bia_f32::blocked:a:f0 "
      "dst_f32::blocked:acdb:f0";
  const std::string new_tensors =
      "src:f32::blocked:acdb::f0 wei:f32:a:blocked:cdba::f0 bia:f32::blocked:a::f0 "
      "dst:f32::blocked:acdb::f0";
  const std::string problem = "mb8_ic64oc32_ih56oh56kh3sh1dh0ph1_iw56ow56kw3sw1dw0pw1";
  for (const std::string& line : {
           "mkldnn_verbose,exec,convolution,gemm:jit,backward_weights," + old_tensors +
               ",alg:convolution_direct," + problem + ",1.5",
           "dnnl_verbose,exec,cpu,convolution,gemm:jit,backward_weights," + old_tensors +
               ",,alg:convolution_direct," + problem + ",1.5",
           "onednn_verbose,exec,cpu,convolution,gemm:jit,backward_weights," + old_tensors +
               ",attr-scratchpad:user ,alg:convolution_direct," + problem + ",1.5",
           "onednn_verbose,1699.25,exec,cpu,convolution,gemm:jit,backward_weights," + new_tensors +
               ",,alg:convolution_direct," + problem + ",1.5\r",
           "onednn_verbose,primitive,exec,cpu,convolution,gemm:jit,backward_weights," +
               new_tensors + ",,alg:convolution_direct," + problem + ",1.5",
           "[rank 0] onednn_verbose,v1,171.5,primitive,exec,cpu,convolution,gemm:jit,"
           "backward_weights," +
               new_tensors + ",attr-scratchpad:user attr-fpmath:bf16:false," +
               "alg:convolution_direct," + problem + ",1.5,more",
           "dnnl_verbose,exec,cpu,convolution,gemm:jit,backward_weights," + old_tensors +
               ",,alg:convolution_direct," + problem + ",1,5",
       }) {
    SCOPED_TRACE(line);
    const VerboseLine parsed = Parse(line);
    ASSERT_EQ(parsed.kind, Kind::kCall);
    EXPECT_FALSE(parsed.call.transposed);
    EXPECT_EQ(parsed.call.implementation, "gemm:jit");
    EXPECT_EQ(parsed.call.pass, "backward_weights");
    EXPECT_EQ(parsed.call.descriptor, problem);
    EXPECT_EQ(parsed.call.milliseconds, 1.5);
    EXPECT_EQ(parsed.call.src.type, "f32");
    EXPECT_EQ(parsed.call.src.tag, "acdb");
    EXPECT_EQ(parsed.call.weights.tag, "cdba");
    EXPECT_TRUE(parsed.call.src.strides.empty());
    EXPECT_TRUE(parsed.call.bias.given());
    EXPECT_EQ(Replayed(line).problem.text,
              "--conv --dir=BWD_WB --dt=f32 --stag=acdb --wtag=cdba --dtag=acdb "
              "g1mb8_ic64ih56_oc32oh56_kh3_sh1_ph1_dh0");
    EXPECT_EQ(Replayed(line).differences, Texts());
  }
}

TEST(Line, KindsOfLines) {
  EXPECT_EQ(Parse("").kind, Kind::kText);
  EXPECT_EQ(Parse("epoch 3, loss 0.25").kind, Kind::kText);
  EXPECT_EQ(Parse("export ONEDNN_VERBOSE=1").kind, Kind::kText);
  EXPECT_EQ(Parse("onednn_verbose,").kind, Kind::kNotExecuted);
  const VerboseLine info = Parse("onednn_verbose,info,oneDNN v2.6.0 (commit 0123)");
  EXPECT_EQ(info.kind, Kind::kInfo);
  EXPECT_EQ(info.info, "oneDNN v2.6.0 (commit 0123)");
  EXPECT_EQ(Parse("onednn_verbose,v1,primitive,info,template:operation,engine,primitive").kind,
            Kind::kInfo);
  EXPECT_EQ(Parse("onednn_verbose,primitive,create:cache_miss,cpu,convolution,jit,forward,x").kind,
            Kind::kNotExecuted);
  EXPECT_EQ(Parse("onednn_verbose,primitive,exec:check,convolution,unused,src/a.cpp:74").kind,
            Kind::kNotExecuted);
  const VerboseLine reorder = Parse(
      "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:abcd::f0 "
      "dst:f32::blocked:acdb::f0,,,2x8x5x5,0.01");
  EXPECT_EQ(reorder.kind, Kind::kOtherPrimitive);
  EXPECT_EQ(reorder.primitive, "reorder");
  const VerboseLine graph = Parse("onednn_verbose,v1,graph,exec,cpu,100,convolution,conv0,x,1");
  EXPECT_EQ(graph.kind, Kind::kOtherPrimitive);
  EXPECT_EQ(graph.primitive, "graph");
}

TEST(Line, WhatIsMissing) {
  EXPECT_NE(ErrorOf("onednn_verbose,exec,cpu,convolution").find("a pass"), std::string::npos);
  EXPECT_NE(ErrorOf("onednn_verbose,exec,cpu,convolution,jit,forward_training").find("tensors"),
            std::string::npos);
  const std::string line = Line("forward_training", kPlain);
  const std::string without_time = line.substr(0, line.rfind(','));
  EXPECT_NE(ErrorOf(without_time).find("its time"), std::string::npos);
  for (const char* time :
       {",", ",-1", ",nan", ",inf", ",fast", ",1e999", ",1e308", ",1.1e12", ",1.5.5"}) {
    EXPECT_NE(ErrorOf(without_time + time).find("its time"), std::string::npos) << time;
  }
  EXPECT_NE(ErrorOf(without_time.substr(0, without_time.rfind(','))).find("a problem"),
            std::string::npos);
  // Version 0.x does not say types.
  EXPECT_NE(ErrorOf("mkldnn_verbose,exec,convolution,gemm:blas,backward_data,fsrc:nchw fwei:oihw "
                    "fbia:undef fdst:nchw,alg:convolution_direct,mb4_ic1oc1_iw3ow3kw1,1.5")
                .find("the type of src, as versions from 1.0 on do"),
            std::string::npos);
}

// --- calls as problems --------------------------------------------------------------------------

TEST(Replayed, PassesAndTypes) {
  const auto options = [](const std::string& pass, const std::string& types) {
    const std::string src = types.substr(0, types.find(':'));
    const std::string rest = types.substr(types.find(':') + 1);
    const std::string wei = rest.substr(0, rest.find(':'));
    const std::string bia = rest.substr(rest.find(':') + 1);
    const ReplayedCase replayed = Replayed(Line(
        pass, "src:" + src + "::blocked:abcd::f0 wei:" + wei + "::blocked:abcd::f0 bia:" + bia +
                  "::blocked:a::f0 dst:" + src + "::blocked:abcd::f0"));
    const std::string& text = replayed.problem.text;
    std::string all = text.substr(7, text.find(" --stag") - 7);
    for (const std::string& difference : replayed.differences) all += " " + difference;
    return all;
  };
  EXPECT_EQ(options("forward_training", "f32:f32:undef"), "--dir=FWD_D --dt=f32");
  EXPECT_EQ(options("forward_inference", "f16:f16:undef"), "--dir=FWD_I --dt=f16");
  EXPECT_EQ(options("forward_inference", "f16:f16:f16"), "--dir=FWD_B --dt=f16");
  EXPECT_EQ(options("backward_data", "bf16:bf16:undef"), "--dir=BWD_D --dt=bf16");
  EXPECT_EQ(options("backward_weights", "bf16:f32:f32"), "--dir=BWD_WB --dt=bf16:f32:bf16");
  EXPECT_EQ(options("backward_weights", "bf16:bf16:undef"), "--dir=BWD_W --dt=bf16");
  EXPECT_EQ(options("forward_training", "bf16:bf16:f32"),
            "--dir=FWD_B --dt=bf16 bia as bf16 instead of f32");
}

TEST(Replayed, LayoutsAndWhatTheyBecome) {
  const std::string blocked =
      "src:f32:p:blocked:aBcd16b::f0 wei:f32:ap:blocked:ABcd16b16a::f0 bia:undef::undef::: "
      "dst:f32::blocked:acdb::f0";
  const ReplayedCase replayed = Replayed(Line("backward_data", blocked));
  EXPECT_EQ(replayed.problem.text,
            "--conv --dir=BWD_D --dt=f32 --stag=abcd --wtag=abcd --dtag=acdb "
            "g1mb2_ic8ih5_oc4oh5_kh3_sh1_ph1_dh0");
  EXPECT_EQ(replayed.differences,
            (Texts{"src as abcd instead of aBcd16b", "wei as abcd instead of ABcd16b16a"}));
  const ReplayedCase wino = Replayed(
      Line("forward_inference",
           "src_f32::blocked:Acdb16a:f0 wei_f32::wino::f0 bia_undef::undef::f0 dst_f32::any::f0"));
  EXPECT_EQ(wino.differences,
            (Texts{"src as acdb instead of Acdb16a", "wei as any instead of wino"}));
}

TEST(Replayed, StridesOfTensorsThatAreNotDense) {
  const ReplayedCase replayed = Replayed(
      Line("forward_training",
           "src:f32::blocked:acdb:256x1x48x8:f0 wei:f32::blocked:abcd::f0 bia:undef::undef::: "
           "dst:f32::blocked:acdb::f0"));
  EXPECT_EQ(replayed.differences, Texts());
  EXPECT_EQ(replayed.problem.inputs[0].strides, (Dims{256, 1, 48, 8}));
  EXPECT_EQ(replayed.problem.outputs[0].strides, (Dims{100, 1, 20, 4}));
}

TEST(Replayed, GroupsAndTransposedProblems) {
  const ReplayedCase grouped =
      Replayed(Line("backward_weights",
                    "src:f32::blocked:acdb::f0 wei:f32::blocked:decab::f0 bia:undef::undef::: "
                    "dst:f32::blocked:acdb::f0",
                    "", "g2mb2_ic8oc4_ih9oh4kh3sh2dh0ph0_iw9ow9kw3sw1dw0pw1"));
  EXPECT_EQ(*grouped.problem.operation.attributes.Find("weights_format")->text(), "XIO");
  EXPECT_EQ(grouped.problem.outputs[0].extents, (Dims{3, 3, 4, 4}));
  EXPECT_EQ(grouped.problem.inputs[1].extents, (Dims{2, 4, 9, 4}));
  EXPECT_EQ(grouped.differences, Texts());
  // No format has the groups innermost.
  const ReplayedCase odd =
      Replayed(Line("backward_weights",
                    "src:f32::blocked:acdb::f0 wei:f32::blocked:debca::f0 bia:undef::undef::: "
                    "dst:f32::blocked:acdb::f0",
                    "", "g2mb2_ic8oc4_ih9oh4kh3sh2dh0ph0_iw9ow9kw3sw1dw0pw1"));
  EXPECT_EQ(odd.differences, (Texts{"wei as any instead of debca"}));
  const ReplayedCase transposed =
      Replayed(Line("backward_data",
                    "src:f32::blocked:abcd::f0 wei:f32::blocked:bacd::f0 bia:undef::undef::: "
                    "dst:f32::blocked:abcd::f0",
                    "", "mb1_ic3oc5_ih4oh8kh3sh2dh0ph1_iw4ow8kw3sw2dw0pw1", "deconvolution"));
  EXPECT_EQ(transposed.problem.operation.kind, OpKind::kConvTransposeBackwardData);
  EXPECT_EQ(transposed.problem.inputs[0].extents, (Dims{1, 5, 8, 8}));
  EXPECT_EQ(transposed.problem.inputs[1].extents, (Dims{3, 5, 3, 3}));
  EXPECT_TRUE(transposed.problem.inputs[1].strides.empty());  // bacd is IOX
}

TEST(Replayed, AttributesThatAskForMore) {
  EXPECT_EQ(Replayed(Line("forward_training", kPlain, "attr-scratchpad:user ")).differences,
            Texts());
  EXPECT_EQ(Replayed(Line("forward_training", kPlain, "attr-post-ops:eltwise_relu")).differences,
            (Texts{"without attr-post-ops:eltwise_relu"}));
}

TEST(Replayed, Refusals) {
  EXPECT_EQ(Refusal(Line("forward_inference",
                         "src:u8::blocked:acdb::f0 wei:s8::blocked:AcdB16b::f0:s8m1 "
                         "bia:undef::undef::: dst:s32::blocked:acdb::f0")),
            "the types are src u8, wei s8, dst s32, and convgrad has one of f32, bf16 and f16 for "
            "all of them, or f32 for the gradient of the weights");
  EXPECT_NE(Refusal(Line("forward_inference",
                         "src:bf16::blocked:acdb::f0 wei:f32::blocked:abcd::f0 bia:undef::undef::: "
                         "dst:bf16::blocked:acdb::f0"))
                .find("the types are"),
            std::string::npos);
  std::string gpu = Line("forward_training", kPlain);
  gpu.replace(gpu.find("cpu"), 3, "gpu");
  EXPECT_EQ(Refusal(gpu), "the engine is gpu");
  EXPECT_EQ(Refusal(Line("forward_inference", std::string(kPlain) + " src_fused:f32::any::f0")),
            "a depthwise convolution is fused to it");
  EXPECT_NE(Refusal(Line("forward_training", kPlain, "", "mb2_ic8oc4_ih5kh9")).find("oh follows"),
            std::string::npos);
  EXPECT_NE(Refusal(Line("forward_training",
                         "src:f32::blocked:*::f0 wei:f32::blocked:abcd::f0 dst:f32::any::f0"))
                .find("tag '*'"),
            std::string::npos);
}

TEST(Replayed, NamesANegativeEntry) {
  EXPECT_NE(Refusal(Line("forward_training", kPlain, "", "mb2_ic8oc4_iw5ow3kw3sw1dw0pw-1"))
                .find("pw must be followed by a number"),
            std::string::npos);
}

// --- logs ---------------------------------------------------------------------------------------

TEST(Log, RecordsThatRanTogether) {
  VerboseLog log;
  log.Accept("step " + Line("forward_training", kPlain) + Line("backward_data", kPlain) +
             "dnnl_verbose,exec,cpu,reorder,x");
  ASSERT_EQ(log.groups().size(), 2u);
  EXPECT_EQ(log.groups()[0].milliseconds, 0.25);
  EXPECT_EQ(log.groups()[1].call.pass, "backward_data");
  EXPECT_EQ(log.other_primitives().total(), 1);
  EXPECT_EQ(log.verbose_lines(), 1);
}

// A group is a problem, not a spelling of one.
TEST(Log, GroupsOtherSpellings) {
  VerboseLog log;
  for (const char* descriptor :
       {"mb2_ic8oc4_ih5oh5kh3sh1dh0ph1_iw5ow5kw3sw1dw0pw1", "g1mb2_ic8oc4_ih5oh5kh3sh1dh0ph1",
        "mb2_ic8oc4_ih5oh5kh3ph1_iw5ow5kw3pw1", "mb2ic8oc4_ih5oh5kh3ph1"}) {
    log.Accept(Line("forward_training", kPlain, "", descriptor));
    log.Accept(Line("forward_training", kPlain, "attr-scratchpad:user", descriptor));
  }
  log.Accept(
      Line("forward_training", kPlain, "attr-post-ops:eltwise_relu", "mb2_ic8oc4_ih5kh3ph1"));
  log.Accept(Line("forward_training", kPlain, "", "mb3_ic8oc4_ih5oh5kh3ph1"));
  ASSERT_EQ(log.groups().size(), 3u);
  EXPECT_EQ(log.groups()[0].calls, 8);
  EXPECT_EQ(log.groups()[0].milliseconds, 2.0);
  EXPECT_EQ(log.groups()[1].calls, 1);
  EXPECT_EQ(log.groups()[2].calls, 1);
}

TEST(Log, GroupsEqualCalls) {
  VerboseLog log;
  log.Accept("onednn_verbose,v1,info,oneDNN v3.5.3 (commit 66f0cb9eb66affd2)");
  log.Accept("onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:8");
  log.Accept("step 1");
  for (int i = 0; i < 3; ++i) log.Accept(Line("forward_training", kPlain));
  log.Accept(Line("backward_data", kPlain));
  log.Accept(Line("forward_training", kPlain, "attr-post-ops:eltwise_relu"));
  log.Accept(Line("forward_training", kPlain));
  log.Accept(Line("forward_training",
                  "src:u8::blocked:acdb::f0 wei:s8::blocked:abcd::f0 dst:u8::blocked:acdb::f0"));
  log.Accept("onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,x,,,2x8,0.01");
  log.Accept("onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,y,,,2x8,0.01");
  log.Accept("onednn_verbose,v1,primitive,exec,cpu,convolution,cut off");
  log.Accept("onednn_verbose,v1,primitive,exec,cpu,convolution," + std::string(100000, 'x'));
  ASSERT_EQ(log.groups().size(), 3u);
  EXPECT_EQ(log.groups()[0].calls, 4);
  EXPECT_EQ(log.groups()[0].milliseconds, 1.0);
  EXPECT_EQ(log.groups()[1].calls, 1);
  EXPECT_EQ(log.groups()[1].call.pass, "backward_data");
  EXPECT_EQ(log.version(), "oneDNN v3.5.3");
  EXPECT_EQ(log.threads(), "8");
  EXPECT_EQ(log.lines(), 14);
  EXPECT_EQ(log.verbose_lines(), 12);
  EXPECT_EQ(log.skipped().total(), 2);
  ASSERT_EQ(log.other_primitives().entries().size(), 1u);
  EXPECT_EQ(log.other_primitives().entries()[0].reason, "reorder");
  EXPECT_EQ(log.other_primitives().entries()[0].count, 2);
}

}  // namespace
}  // namespace convgrad::onednn
