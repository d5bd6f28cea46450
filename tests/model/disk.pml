/* SPDX-License-Identifier: Apache-2.0
   The destination of the saves, on a disk that loses what was not made durable. Each thing that a
   save makes has a place, and goes through its places in one direction. A change of place is one
   rename: durable by a sync of either directory, and by nothing else. A power cut keeps or loses
   every change that is not durable, each for itself, but changes of one name in their order: the
   rules of cairn/testing/lossy_disk.h. What of a save's bytes was not synced is missing.

   Saves have the numbers 1 and 2; 0 is a checkpoint that was there before. */

#define NONE 3
#define BIT(n) (1 << (n))

/* Things. */
#define P 0 /* the directories of two prefixes */
#define Q 1
#define RECORD 2
#define MARK 3
#define ATTEMPT 4 /* the directory .cairn-<id> */
#define OUTCOME 5 /* outcome.json in it */
#define THING(kind, i) ((kind) * 3 + (i))

/* Places. */
#define NOWHERE 0
#define STAGED 1 /* in new/; of an outcome: it is there */
#define IN_PLACE 2
#define ASIDE 3 /* in old/; of an attempt: in the trash */
#define UNLINKED 4

byte seen[18]; /* by everybody who looks */
byte durable[18];
byte generation[3]; /* of each save's record */
bit emptied[3];     /* what was in its attempt is deleted */

#define PLACE(kind, i) seen[THING(kind, i)]
#define WHO_IS_IN_PLACE(kind)                                                          \
  (PLACE(kind, 2) == IN_PLACE -> 2                                                     \
   : (PLACE(kind, 1) == IN_PLACE -> 1 : (PLACE(kind, 0) == IN_PLACE -> 0 : NONE)))
/* A record goes when another is renamed onto it. */
#define LATER (generation[2] > generation[1] -> 2 : 1)
#define RECORD_IN_PLACE                                                                \
  (PLACE(RECORD, LATER) == IN_PLACE -> LATER                                           \
   : (PLACE(RECORD, 3 - LATER) == IN_PLACE -> 3 - LATER : 0))

/* For the loops below; 0 outside them, so that they tell no states apart. */
byte n_;
byte k_;
byte at_;
bit lost_;

/* Where no power is cut, nothing need be made durable. */
#if CUTS
#define SYNC(act) act;
#else
#define SYNC(act)
#endif

inline change(kind, i, place) { seen[THING(kind, i)] = place }

/* Directories. Whatever is in place, or was, got there by a change of names in the destination. */
inline sync_destination() {
  d_step {
    n_ = 0;
    do
    :: n_ < 18 ->
      durable[n_] = (seen[n_] >= IN_PLACE -> seen[n_] : durable[n_]);
      n_++
    :: else -> break
    od;
    n_ = 0
  }
}

/* Names in new/, and the bytes of these things, from one kind to another. */
inline sync_new(i, first, last) {
  d_step {
    n_ = THING(first, i);
    do
    :: n_ <= THING(last, i) ->
      durable[n_] = (durable[n_] < IN_PLACE && seen[n_] >= IN_PLACE -> IN_PLACE : durable[n_]);
      durable[n_] = (durable[n_] < STAGED && seen[n_] >= STAGED -> STAGED : durable[n_]);
      n_ = n_ + 3
    :: else -> break
    od;
    n_ = 0
  }
}

inline sync_attempt(i) { durable[THING(OUTCOME, i)] = seen[THING(OUTCOME, i)] }

/* old/ of an attempt, and the trash. */
inline sync_aside() {
  d_step {
    n_ = 0;
    do
    :: n_ < 18 ->
      durable[n_] = (seen[n_] >= ASIDE -> seen[n_] : durable[n_]);
      n_++
    :: else -> break
    od;
    n_ = 0
  }
}

/* Everything that is aside is in the trash by then. */
inline empty_trash() {
  d_step {
    n_ = 0;
    do
    :: n_ < THING(RECORD, 0) ->
      seen[n_] = (seen[n_] == ASIDE -> UNLINKED : seen[n_]);
      n_++
    :: else -> break
    od;
    n_ = 0;
    emptied[1] = emptied[1] || PLACE(ATTEMPT, 1) == ASIDE;
    emptied[2] = emptied[2] || PLACE(ATTEMPT, 2) == ASIDE
  }
}

/* REQUIRES: inside atomic. */
inline cut_power() {
  k_ = 0;
  do
  :: k_ < 6 ->
    /* Things of one kind take the same name one after the other; attempts have their own. */
    lost_ = 0;
    at_ = 0;
    do
    :: at_ < 3 ->
      n_ = (at_ == 0 -> 0 : (at_ == 1 -> 3 - LATER : LATER));
      n_ = THING(k_, n_);
      do
      :: durable[n_] < seen[n_] && (durable[n_] < STAGED || !lost_) -> durable[n_]++
      :: break
      od;
      lost_ = lost_ || (k_ < ATTEMPT && seen[n_] >= IN_PLACE && durable[n_] < seen[n_]);
      seen[n_] = durable[n_];
      at_++
    :: else -> break
    od;
    k_++
  :: else -> break
  od;
  k_ = 0;
  n_ = 0;
  at_ = 0;
  lost_ = 0
}
