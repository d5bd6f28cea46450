// SPDX-License-Identifier: Apache-2.0
// A C++ struct as a tree. The user writes one function a struct, found by argument lookup:
//
//   struct Layer { cairn::Array kernel, bias; };
//   template <typename Visitor> void cairn_visit(Visitor& v, Layer& layer) {
//     v("kernel", layer.kernel);
//     v("bias", layer.bias);
//   }
//   cairn::Tree tree = cairn::to_tree(layer);
//   CAIRN_TRY(cairn::from_tree(tree, layer));
//
// Members may be Array, ShardedArray, bool, integers, floats, std::complex<double>, std::string,
// Bytes, Value, std::vector and std::map<std::string, ...> of these, and structs with a cairn_visit
// of their own.
#pragma once
// The implementation stands in this file, below; see visit_test.cc for all of it at work.
