// SPDX-License-Identifier: Apache-2.0
// tests/oracle/test_partition_rules.py compares many thousand random expressions with Python's
// `re`.
#include "cairn/sharding/regex.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cairn/sharding/python_regex.h"

namespace cairn {
namespace {

/// "yes", "no", or the reason.
std::string search(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  if (!regex) return std::string(regex.error().reason());
  RegexSearch search;
  if (const auto taken = search.in(text); !taken) return std::string(taken.error().reason());
  const auto found = search.finds(*regex);
  if (!found) return std::string(found.error().reason());
  return *found ? "yes" : "no";
}

std::string message(std::string_view pattern) {
  const auto regex = Regex::compile(pattern);
  return regex ? "ok" : regex.error().message();
}

struct Case {
  std::string_view pattern;
  std::string_view text;
  std::string_view found;
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    EXPECT_EQ(search(test.pattern, test.text), test.found) << test.pattern << " in " << test.text;
  }
}

TEST(Regex, IsSearchedForAnywhere) {
  expect_all({{"kernel", "a/kernel/b", "yes"},
              {"^kernel", "a/kernel", "no"},
              {"", "", "yes"},
              {"layers/\\d+/(q|k)_proj/kernel$", "params/layers/12/q_proj/kernel", "yes"},
              {"layers/\\d+/(q|k)_proj/kernel$", "params/layers/12/o_proj/kernel", "no"},
              {"(wi|wo)$", "mlp/wo", "yes"}});
}

TEST(Regex, MeansWhatItMeansInPython) {
  expect_all({
      {"a$", "a\n", "yes"},
      {"a\\Z", "a\n", "no"},
      {"(?m)^$", "a\n", "yes"},
      {"a.b", "a\rb", "yes"},
      {"a.b", "a\nb", "no"},
      {"(?s)a.b", "a\nb", "yes"},
      {"^\\d$", "\u0661", "yes"},
      {"^\\w$", "\u00e9", "yes"},
      {"^\\s$", "\x1c", "yes"},
      {"^\\s$", "\u180e", "no"},
      {"^[\\S]$", "\u180e", "yes"},
      {"\\B", "", "no"},
      {"^a{,2}$", "aa", "yes"},
      {"^a{,}$", "aaa", "yes"},
      {"^a{x}$", "a{x}", "yes"},
      {"^a{}$", "a{}", "yes"},
      {"^[]a]$", "]", "yes"},
      {"^[^]a]$", "b", "yes"},
      {"^[a-]$", "-", "yes"},
      {"^[[:alpha:]]$", "a]", "yes"},
      {"^[\\b]$", "\b", "yes"},
      {"(?i)^i$", "\u0131", "yes"},
      {"(?i)^[h-j]$", "\u0130", "yes"},
      {"(?i)^k$", "\u212a", "yes"},
      {"i", "\u0131", "no"},
      {"^\\101\\x41\\u0041\\U00000041\\07$", "AAAA\a", "yes"},
      {"^(?P<n>a|b)(?P=n)$", "bb", "yes"},
      {"^(a)(b)\\2$", "abb", "yes"},
      {"^(a)?(?(1)b|c)$", "c", "yes"},
      {"^(?P<n>a)?(?(n)b|c)$", "ab", "yes"},
      {"(?<=ab|cd)e", "cde", "yes"},
      {"^a(?#comment \\) with a parenthesis)*$", "aaa", "yes"},
      {"(?x) a b # all of it\n c", "abc", "yes"},
      {"(?x)a[ ]b\\ c", "a b c", "yes"},
      {"^(?i:a)b$", "Ab", "yes"},
      {"^(?i:a)b$", "AB", "no"},
      {"^(?:a|ab){1,2}+c$", "abac", "no"},
      {"b?(?:#)?+b", "b", "yes"},
      {"b{0}(?=a)a", "a", "yes"},
      {"(?:a|\\A){0}b", "ab", "yes"},
      {"(?:(a)(b)){0}(c)\\3$", "cc", "yes"},
      {"(a){0}b\\1", "b", "no"},
      {"(?=a)a*a", "a", "yes"},
      {".*^a", "ba", "no"},
      {".*a|.*b", "\nb", "yes"},
      {".*+a", "aa", "no"},
      {"^(?>a*)a$", "aaa", "no"},
  });
}

TEST(Regex, RefusesWhatPythonDoesNotKnow) {
  const std::string_view patterns[] = {"\\h",
                                       "\\R",
                                       "\\K",
                                       "\\Qa\\E",
                                       "\\z",
                                       "\\G",
                                       "\\X",
                                       "\\p{L}",
                                       "\\x{61}",
                                       "\\o{61}",
                                       "\\cA",
                                       "\\g1",
                                       "\\k<n>",
                                       "(?R)",
                                       "(?1)",
                                       "(?&n)",
                                       "(?<n>a)",
                                       "(?'n'a)",
                                       "(?|a)",
                                       "(?^:a)",
                                       "(?C)",
                                       "(?J)",
                                       "(*UTF)a",
                                       "(*ACCEPT)",
                                       "(*F)",
                                       "(?P>n)",
                                       "[\\8]",
                                       "[\\A]",
                                       "\\8",
                                       "\\400",
                                       "(a\\1)",
                                       "\\1(a)",
                                       "(?(1)a)",
                                       "(?(0)a)",
                                       "()(?(1)a|b|c)",
                                       "a(?i)b",
                                       "(?L)a",
                                       "(?i-i:a)",
                                       "(?-u:a)",
                                       "(?i-:a)",
                                       "(?-)",
                                       "(?",
                                       "(?i",
                                       "(?P<1>a)",
                                       "(?P<>a)",
                                       "(?P<n",
                                       "(?P=n)",
                                       "(?P<n>)(?P<n>)",
                                       "(?<=a*)b",
                                       "(?<=a|bc)",
                                       "(?<!\\1)",
                                       "(?<=(a)\\1)",
                                       "*",
                                       "a**",
                                       "a{2}{3}",
                                       "^*",
                                       "\\b+",
                                       "(*)",
                                       "a|*",
                                       ".**",
                                       "a{2,1}",
                                       "(",
                                       ")",
                                       "a)",
                                       "[",
                                       "[]",
                                       "[b-a]",
                                       "[\\d-z]",
                                       "\\",
                                       "[\\",
                                       "\\x1",
                                       "\\u123",
                                       "\\U00110000",
                                       "(?#",
                                       "(?x)#\\",
                                       "(?x)( ?:a)"};
  for (const std::string_view pattern : patterns) {
    EXPECT_EQ(search(pattern, ""), "regex/syntax") << pattern;
  }
}

TEST(Regex, RefusesByNameWhatOnlyPythonKnows) {
  const std::string_view patterns[] = {
      "(?a)\\d",      "\\N{EM DASH}", "(?P<\u00e9>a)", "(?i)(a)\\1",
      "(a(?(1)b|c))", "a{65536}",     "\\ud800",       "(?:(?:a{999}){999}){999}"};
  for (const std::string_view pattern : patterns) {
    EXPECT_EQ(search(pattern, ""), "regex/unsupported") << pattern;
  }
  EXPECT_EQ(search(std::string(90, '(') + std::string(90, ')'), ""), "yes");
  EXPECT_EQ(search(std::string(150, '(') + std::string(150, ')'), ""), "regex/unsupported");
}

TEST(Regex, NamesTheProblemAndItsPosition) {
  EXPECT_EQ(message("ab[c"), "unterminated character set at position 2");
  EXPECT_EQ(message("\u00e9**"), "multiple repeat at position 2");
  EXPECT_EQ(message("a\\h"), "bad escape at position 1");
  EXPECT_EQ(message("(?i)x(?a:b)"), "flag a at position 7 is not supported; write it another way");
}

TEST(Regex, RefusesTextThatIsNoUtf8OrTooLong) {
  EXPECT_EQ(search("a\xff", "a"), "regex/utf8");
  EXPECT_EQ(search("a", "\xff"), "regex/utf8");
  EXPECT_EQ(search(std::string(kMaxPatternBytes, 'a'), "a"), "no");
  EXPECT_EQ(search(std::string(kMaxPatternBytes + 1, 'a'), "a"), "regex/too-long");
  EXPECT_EQ(search(std::string_view("a\0b", 3), std::string_view("a\0b", 3)), "yes");
}

TEST(Regex, GivesUpInsteadOfHanging) {
  const std::string text(5000, 'a');
  EXPECT_EQ(search("(a+)+$", std::string(12, 'a') + "b"), "no");
  EXPECT_EQ(search("(a+)+$", std::string(21, 'a') + "b"), "regex/limit");
  EXPECT_EQ(search("(a+)+$", text + "b"), "regex/limit");
  EXPECT_EQ(search("(?:a|aa)+$", text + "b"), "regex/limit");
  // Few steps, but memory for each.
  EXPECT_EQ(search("^(?:a|b)*$", text), "yes");
  EXPECT_EQ(search("^(?:a|b)*$", std::string(300'000, 'a')), "regex/limit");
  EXPECT_EQ(search("(.*)(.*)(.*)(.*)(.*)b$", text), "no");
  EXPECT_EQ(search("((((a*)*)*)*)*b", text), "no");
  EXPECT_EQ(search(".*kernel.*", text + "kernel"), "yes");
}

}  // namespace
}  // namespace cairn
