// SPDX-License-Identifier: Apache-2.0
// All of Cairn that a program needs to save and load: one include.
#pragma once

#include "cairn/checkpoint/inspect/convert.h"
#include "cairn/checkpoint/inspect/diff.h"
#include "cairn/checkpoint/inspect/stats.h"
#include "cairn/checkpoint/inspect/verify.h"
#include "cairn/checkpoint/load/load.h"
#include "cairn/checkpoint/runtime.h"
#include "cairn/checkpoint/save/save.h"
#include "cairn/checkpoint/serialize_leaves.h"
#include "cairn/checkpoint/version.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/sharding/partition_rules.h"
#include "cairn/tree/flatten.h"
#include "cairn/tree/tree.h"
#include "cairn/tree/visit.h"
