// SPDX-License-Identifier: Apache-2.0
// All of Cairn that a program needs to save and load: one include.
#pragma once

#include "cairn/base/version.h"
#include "cairn/inspect/convert.h"
#include "cairn/inspect/diff.h"
#include "cairn/inspect/serialize_leaves.h"
#include "cairn/inspect/stats.h"
#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/read_boxes.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/runtime/runtime.h"
#include "cairn/save/save.h"
#include "cairn/sharding/make_sharded.h"
#include "cairn/sharding/partition_rules.h"
#include "cairn/tree/flatten.h"
#include "cairn/tree/sharding_tree.h"
#include "cairn/tree/tree.h"
#include "cairn/tree/visit.h"
