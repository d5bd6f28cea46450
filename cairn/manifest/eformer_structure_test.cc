// SPDX-License-Identifier: Apache-2.0
// The pickles here were made by JAX 0.10, of trees that the tests describe.
#include "cairn/manifest/eformer_structure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/base/base64.h"
#include "cairn/base/pickle.h"
#include "cairn/manifest/eformer_structure_writer.h"
#include "cairn/testing/must.h"
#include "cairn/tree/structure.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::must;

// {"a": [0, (None, 2, {1: b"y", 3: "x"})], "b": 0, "e": ([], ())}
constexpr const char* kPlain =
    "gASVFwEAAAAAAACMEmpheGxpYi5famF4LnB5dHJlZZSMCVB5VHJlZURlZpSTlCmBlIwSamF4Ll9zcmMudHJlZV91dGls"
    "lIwQZGVmYXVsdF9yZWdpc3RyeZSTlF2UKChLAEsATk5LAUsBdJQoSwBLAE5OSwFLAXSUKEsASwBOTksBSwF0lChLAEsA"
    "Tk5LAUsBdJQoSwBLAE5OSwFLAXSUKEsFSwJdlChLAUsDZU5LAksDdJQoSwJLA05OSwRLBnSUKEsESwJOTksFSwh0lChL"
    "AEsATk5LAUsBdJQoSwRLAE5OSwBLAXSUKEsCSwBOTksASwF0lChLAksCTk5LAEsDdJQoSwVLA12UKIwBYZSMAWKUjAFl"
    "lGVOSwZLDXSUZYaUYi4=";
// OrderedDict(b=0, a=0)
constexpr const char* kOrdered =
    "gASVpQAAAAAAAACMEmpheGxpYi5famF4LnB5dHJlZZSMCVB5VHJlZURlZpSTlCmBlIwSamF4Ll9zcmMudHJlZV91dGls"
    "lIwQZGVmYXVsdF9yZWdpc3RyeZSTlF2UKChLAEsATk5LAUsBdJQoSwBLAE5OSwFLAXSUKEsGSwKMAWKUjAFhlIaUjAtj"
    "b2xsZWN0aW9uc5SMC09yZGVyZWREaWN0lJOUSwJLA3SUZYaUYi4=";
// mine.P(x=0, y=[])
constexpr const char* kNamed =
    "gASViwAAAAAAAACMEmpheGxpYi5famF4LnB5dHJlZZSMCVB5VHJlZURlZpSTlCmBlIwSamF4Ll9zcmMudHJlZV91dGls"
    "lIwQZGVmYXVsdF9yZWdpc3RyeZSTlF2UKChLAEsATk5LAUsBdJQoSwRLAE5OSwBLAXSUKEsDSwKMBG1pbmWUjAFQlJOU"
    "TksBSwN0lGWGlGIu";

constexpr const char* kNone = "gAROLg==";
constexpr const char* kTwo = "gARLAi4=";
constexpr const char* kX = "gASVBQAAAAAAAACMAXiULg==";
constexpr const char* kBytesY = "gASVBQAAAAAAAABDAXmULg==";

Json::Array texts(std::initializer_list<const char*> items) {
  return Json::Array(items.begin(), items.end());
}

Json plain_file() {
  return Json::Object{
      {"format", "pytree-structure"},
      {"prefix", "m"},
      {"treedef_b64", kPlain},
      {"leaf_keys_full", texts({"m.a.0", "m.a.1.0", "m.a.1.1", "m.a.1.2.1", "m.a.1.2.3", "m.b"})},
      {"arr_mask", Json::Array{true, false, false, false, false, true}},
      {"array_relpaths", texts({"m/a/0", "m/b"})},
      {"nonarray_payload", Json::Object{{"1", kNone}, {"2", kTwo}, {"3", kBytesY}, {"4", kX}}},
  };
}

Json small_file(const char* treedef, Json::Array keys, Json::Array paths) {
  return Json::Object{
      {"format", "pytree-structure"},
      {"prefix", "m"},
      {"treedef_b64", treedef},
      {"leaf_keys_full", std::move(keys)},
      {"arr_mask", Json::Array(paths.size(), true)},
      {"array_relpaths", std::move(paths)},
      {"nonarray_payload", Json::Object()},
  };
}

Result<EformerStructure> parse(const Json& file) {
  return parse_eformer_structure(dump_json(file), "m");
}

TEST(EformerStructure, HasContainersAndValues) {
  const auto made = must(parse(plain_file()));
  EXPECT_EQ(dump_json(made.structure),
            R"({"dict":[["a",{"list":["array",{"tuple":[null,)"
            R"({"value":{"type":"int","value":"2"}},)"
            R"({"dict":[[1,{"value":{"type":"bytes","value":"eQ=="}}],)"
            R"([3,{"value":{"type":"str","value":"x"}}]]}]}]}],["b","array"],)"
            R"(["e",{"tuple":[{"list":[]},{"tuple":[]}]}]]})");
  EXPECT_THAT(made.arrays, ElementsAre("m/a/0", "m/b"));
  EXPECT_THAT(made.paths, ElementsAre(KeyPath({"a", "0"}), KeyPath({"b"})));
  ASSERT_EQ(made.values.size(), 3u);
  EXPECT_EQ(made.values[0].first.text(), "a.1.1");
  EXPECT_EQ(made.values[0].second, Value(Integer(2)));
  EXPECT_TRUE(made.notes.empty());
}

TEST(EformerStructure, NamesTheClassesOfOtherContainers) {
  const auto ordered =
      must(parse(small_file(kOrdered, texts({"m.b", "m.a"}), texts({"m/b", "m/a"}))));
  EXPECT_EQ(dump_json(ordered.structure),
            R"({"custom":[["b","array"],["a","array"]],"class":"collections:OrderedDict",)"
            R"("static":"{\"tuple\":[\"b\",\"a\"]}"})");
  const auto named = must(parse(small_file(kNamed, texts({"m.x"}), texts({"m/x"}))));
  EXPECT_EQ(dump_json(named.structure),
            R"({"namedtuple":[["x","array"],["1",{"list":[]}]],"class":"mine:P"})")
      << "nothing below the second child has a name";
}

TEST(EformerStructure, TakesTheValuesByNameWhereTheContainersAreUnknown) {
  for (const char* treedef : {"", "?", "gARLAi4=", kOrdered}) {
    Json file = plain_file();
    file.set("treedef_b64", treedef);
    const auto made = must(parse(file));
    EXPECT_TRUE(made.structure.is_null());
    EXPECT_THAT(made.notes, ElementsAre(HasSubstr("nested dicts"))) << treedef;
    ASSERT_EQ(made.values.size(), 4u);
    EXPECT_EQ(made.values[1].first.text(), "a.1.1");
    EXPECT_EQ(made.values[1].second, Value(Integer(2)));
  }
}

TEST(EformerStructure, ExecutesNothing) {
  PickleWriter bomb;
  bomb.begin_call("os", "system");
  bomb.text("true");
  bomb.end_call();
  const std::string text = encode_base64(as_bytes(std::move(bomb).finish()));
  Json file = plain_file();
  file.set("nonarray_payload", Json::Object{{"1", kNone}, {"2", text}, {"3", kBytesY}, {"4", kX}});
  const auto made = must(parse(file));
  EXPECT_FALSE(made.structure.is_null());
  EXPECT_EQ(made.values.size(), 2u);
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("m.a.1.1")));
}

TEST(EformerStructure, RefusesDamageByName) {
  const std::pair<const char*, Json> kDamages[] = {
      {"format", "x"},
      {"prefix", "other"},
      {"leaf_keys_full", 3},
      {"leaf_keys_full", Json::Array{1}},
      {"arr_mask", Json::Array()},
      {"arr_mask", texts({"m/a/0"})},
      {"array_relpaths", texts({"m/a/0"})},
      {"nonarray_payload", Json::Array()},
      {"treedef_b64", Json()},
  };
  for (const auto& [member, value] : kDamages) {
    Json file = plain_file();
    file.set(member, value);
    const auto parsed = parse(file);
    ASSERT_FALSE(parsed) << member;
    const bool other = std::string_view(member) == "format" || std::string_view(member) == "prefix";
    EXPECT_EQ(parsed.error().reason(),
              other ? "structure-file/other-tree" : "structure-file/bad-member");
    EXPECT_EQ(parsed.error().code(), Code::kCorrupt);
  }
  EXPECT_EQ(parse_eformer_structure("{", "m").error().reason(), "structure-file/bad-json");
  EXPECT_EQ(parse_eformer_structure("[]", "m").error().reason(), "structure-file/bad-json");
}

TEST(EformerStructure, IsBoundedWhereAPickleSharesWhatItHolds) {
  // An OrderedDict whose static part would be 2^60 items if it were written down.
  std::string pickle = must(decode_base64(kOrdered));
  std::string doubled = ")q\xc0";
  for (int n = 0; n < 60; ++n) {
    const std::string again = std::string("h") + static_cast<char>(0xc0 + n);
    doubled += again + again + "\x86q" + static_cast<char>(0xc0 + n + 1);
  }
  const std::string keys =
      "\x8c\x01"
      "b\x94\x8c\x01"
      "a\x94\x86\x94";
  const std::size_t at = pickle.find(keys);
  ASSERT_NE(at, std::string::npos);
  pickle.replace(at, keys.size(), doubled);
  const Json file = small_file("", texts({"m.b", "m.a"}), texts({"m/b", "m/a"}));
  Json armed = file;
  armed.set("treedef_b64", encode_base64(as_bytes(pickle)));
  const auto made = must(parse(armed));
  EXPECT_EQ(made.structure.find("static"), nullptr);
}

Manifest manifest_of(const Tree& tree) {
  Manifest manifest;
  manifest.prefix = "m.n";
  manifest.structure = must(structure_to_json(tree));
  return manifest;
}

TEST(EformerStructureWriter, LetsJaxMakeTheContainers) {
  const Tree array(must(Array::allocate(DType::kInt8, {1})));
  const Tree tree = Tree::dict(
      {{"a.b", Tree::list({array, Tree::none()})}, {"c", Tree::tuple({Value(Integer(2)), array})}});
  const auto text = dump_eformer_structure(manifest_of(tree));
  ASSERT_TRUE(text);
  const Json file = must(parse_json(*text));
  EXPECT_EQ(dump_json(*file.find("leaf_keys_full")),
            R"(["m.n.a%2Eb.0","m.n.a%2Eb.1","m.n.c.0","m.n.c.1"])");
  EXPECT_EQ(dump_json(*file.find("arr_mask")), "[true,false,false,true]");
  EXPECT_EQ(dump_json(*file.find("array_relpaths")), R"(["m/n/a%2Eb/0","m/n/c/1"])");
  const auto pickle = must(Pickle::parse(must(decode_base64(*file.find("treedef_b64")->text()))));
  const auto& call = std::get<Pickle::Call>(pickle.root());
  EXPECT_EQ(std::get<Pickle::Name>(pickle.at(call.what)).text, "jax.tree_util:tree_structure");
}

TEST(EformerStructureWriter, LeavesOutWhatNeedsAClass) {
  const Tree leaf(Value(true));
  EXPECT_FALSE(dump_eformer_structure(manifest_of(Tree::named_tuple("m:P", {{"x", leaf}}))));
  EXPECT_FALSE(
      dump_eformer_structure(manifest_of(Tree::list({Tree::custom("m:C", {{"x", leaf}})}))));
  EXPECT_FALSE(dump_eformer_structure(manifest_of(Tree::dict({{1, leaf}, {"b", leaf}}))))
      << "JAX cannot sort such keys";
  EXPECT_TRUE(dump_eformer_structure(manifest_of(Tree::dict({{1, leaf}, {2, leaf}}))));
}

}  // namespace
}  // namespace cairn
