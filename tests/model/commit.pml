/* SPDX-License-Identifier: Apache-2.0
   How a save becomes visible (docs/format/commit.md, steps 1 to 6, each save by one process): two
   saves into one destination, somebody who opens it for writing, processes that are killed and
   power that is cut between any two operations on names, and somebody who reads without a lock.

     SAVES, OPENERS   how many: 1 or 2, 0 or 1
     CUTS, KILLS      how often
     READERS          1: a reader whose every look is a step of its own. Without it, what a reader
                      would see at one moment is checked after every step all the same
     LATE_READER      it begins when all writers have ended, however they ended
     OTHER_PREFIXES   save 1 writes p and save 2 writes q; otherwise both write both
     MUTATE_...       takes one rule away; the file mutations lists them */

#ifndef SAVES
#define SAVES 2
#endif
#ifndef OPENERS
#define OPENERS 1
#endif
#ifndef CUTS
#define CUTS 1
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef READERS
#define READERS 0
#endif

#include "disk.pml"

/* Where no power is cut, what nobody else sees is one step. */
#if CUTS
#define TOGETHER
#else
#define TOGETHER atomic
#endif

#define OPENER 3
#define READER 4

/* What a save writes, and what its record says. */
bit writes_p[3];
bit writes_q[3];
byte record_p[3];
byte record_q[3];
byte committed[3]; /* the attempts that it lists */
byte mark_at_birth[3];

byte lock;    /* who holds .cairn-lock; 0: nobody */
byte alive;   /* saves that hold the lock on their attempt.json */
byte begun;   /* processes */
byte running; /* processes that have begun and not ended */
bit has_read;
byte killed;

bit all_ended;
byte kills; /* to come */
byte cuts;

/* What happened, for the assertions. */
byte died; /* undecided, and left its attempt */
byte reported;
byte failed;

#ifdef MUTATE_PREFIX_UNCHECKED
#define CHECKS_PREFIX 0
#else
#define CHECKS_PREFIX 1
#endif
#ifdef MUTATE_DEAD_AT_FIRST_SIGHT
#define RECHECKS_DEAD 0
#else
#define RECHECKS_DEAD 1
#endif
#ifdef MUTATE_UNMARKED_AT_FIRST_SIGHT
#define RECHECKS_MARK 0
#else
#define RECHECKS_MARK 1
#endif
#ifdef MUTATE_DIGEST_UNCHECKED
#define CHECKS_DIGEST 0
#else
#define CHECKS_DIGEST 1
#endif
#ifdef MUTATE_NO_RESTART
#define RESTARTS 0
#else
#define RESTARTS 1
#endif
#ifdef MUTATE_NEVER_SURE
#define IS_SURE(before) 0
#else
#define IS_SURE(before) (before == PROGRESS)
#endif
#ifdef MUTATE_PLANS_IGNORED
#define READS_PLANS 0
#else
#define READS_PLANS 1
#endif

#define IS_DECIDED(i) (PLACE(ATTEMPT, i) == IN_PLACE && PLACE(OUTCOME, i) == STAGED)
#define WAITS(kind, i) (PLACE(ATTEMPT, i) == IN_PLACE && PLACE(kind, i) == STAGED)
#define UNDECIDED(i) (PLACE(ATTEMPT, i) == IN_PLACE && PLACE(OUTCOME, i) != STAGED -> BIT(i) : 0)
#define IF_WAITS(kind, i) (WAITS(kind, i) -> i : NONE)

/* What can be seen at one moment. Whoever knows nothing of attempts goes by the mark: under it lies
   no mixture. Whoever does takes what waits in a decided one for what is in place. */
#define SEEN(kind, otherwise)                                                                    \
  (IS_DECIDED(1) && WAITS(kind, 1) -> 1 : (IS_DECIDED(2) && WAITS(kind, 2) -> 2 : otherwise))
#define SEEN_RECORD SEEN(RECORD, RECORD_IN_PLACE)
#define MARK_TELLS_TRUTH                                                                         \
  (WHO_IS_IN_PLACE(MARK) == NONE || (WHO_IS_IN_PLACE(MARK) == RECORD_IN_PLACE &&                 \
   WHO_IS_IN_PLACE(P) == record_p[RECORD_IN_PLACE] &&                                            \
   WHO_IS_IN_PLACE(Q) == record_q[RECORD_IN_PLACE]))
#define NO_MIXTURE                                                                               \
  (SEEN(P, WHO_IS_IN_PLACE(P)) == record_p[SEEN_RECORD] &&                                       \
   SEEN(Q, WHO_IS_IN_PLACE(Q)) == record_q[SEEN_RECORD])
#define IS_MARKED (SEEN(MARK, WHO_IS_IN_PLACE(MARK)) != NONE)
#define NOTHING_IS_LOST (!(reported & ~committed[SEEN_RECORD]))
#define FAILURES_FAILED (!(failed & committed[SEEN_RECORD]))
#define ONE_DECIDED_AT_MOST (!(IS_DECIDED(1) && IS_DECIDED(2)))
#define IS_WHOLE(i) (!(emptied[i] && PLACE(ATTEMPT, i) == IN_PLACE))

inline take_lock(who) { atomic { lock == 0 -> lock = who } }

/* What is in the way of something that waits is set aside. */
inline move_out(kind, i) {
  if
  :: d_step {
      PLACE(kind, i) == STAGED && WHO_IS_IN_PLACE(kind) != NONE ->
      change(kind, WHO_IS_IN_PLACE(kind), ASIDE)
    }
  :: else
  fi
}
/* Done exactly while it waits in new/. */
inline move_in(kind, i) {
  if
  :: d_step { PLACE(kind, i) == STAGED -> change(kind, i, IN_PLACE) }
  :: else
  fi
}

inline bury(i) {
  change(ATTEMPT, i, ASIDE);
  SYNC(sync_aside())
  SYNC(sync_destination())
  empty_trash()
}

/* Steps 5 and 6. */
inline finish(i) {
#ifndef MUTATE_MARK_STAYS
  move_out(MARK, i);
  SYNC(sync_aside())
  SYNC(sync_destination())
#endif
#ifdef MUTATE_MARK_BEFORE_ENTRIES
  move_in(MARK, i);
  SYNC(sync_destination())
#endif
  move_out(P, i);
  move_out(Q, i);
  SYNC(sync_destination())
  SYNC(sync_aside())
  move_in(P, i);
  move_in(Q, i);
  SYNC(sync_destination())
  SYNC(sync_new(i, P, MARK))
  move_in(RECORD, i);
#ifndef MUTATE_UNSYNCED_BURIAL
  SYNC(sync_destination())
#endif
  move_in(MARK, i);
#ifndef MUTATE_UNSYNCED_BURIAL
  SYNC(sync_destination())
#endif
  bury(i)
}

inline finish_decided(i) {
#ifndef MUTATE_UNSYNCED_RECOVERY
  SYNC(sync_attempt(i))
  SYNC(sync_destination())
#endif
  finish(i)
}

/* What whoever opens the destination for writing does about an attempt that it finds. */
inline settle(i) {
#ifndef MUTATE_UNSYNCED_PREDECESSOR
  /* Whoever was here before may have been killed before its burial was durable. */
  SYNC(sync_destination())
#endif
  if
  :: IS_DECIDED(i) -> finish_decided(i)
  :: PLACE(ATTEMPT, i) == IN_PLACE && PLACE(OUTCOME, i) != STAGED && !(alive & BIT(i)) -> bury(i)
  :: else -> empty_trash()
  fi
}

/* The record that this save makes of the one in place. */
inline stage(i) {
  d_step {
    n_ = RECORD_IN_PLACE;
    record_p[i] = (writes_p[i] -> i : record_p[n_]);
    record_q[i] = (writes_q[i] -> i : record_q[n_]);
    committed[i] = committed[n_] | BIT(i);
    generation[i] = generation[n_] + 1;
    n_ = 0;
    change(RECORD, i, STAGED);
    change(MARK, i, STAGED)
  }
}

#define SAME_PREFIXES(i, before)                                                        \
  ((!writes_p[i] || record_p[before] == record_p[RECORD_IN_PLACE]) &&                   \
   (!writes_q[i] || record_q[before] == record_q[RECORD_IN_PLACE]))

/* Save 2 begins after save 1: which is which makes no difference. */
#define MAY_BEGIN(me) (lock == 0 && (me == 1 || (begun & BIT(1))))
inline begin(me) {
  lock = me;
  begun = begun | BIT(me);
  running = running | BIT(me)
}
inline end(me) { running = running & ~BIT(me) }

#define WRITERS                                                                                  \
  (BIT(1) | (SAVES > 1 -> BIT(2) : 0) | (OPENERS -> BIT(OPENER) : 0))
#define WRITERS_HAVE_ENDED (begun == WRITERS && !(running & WRITERS))

proctype Save(byte me) {
  byte before, you;
  d_step { MAY_BEGIN(me) -> begin(me); you = 3 - me };
  {
    settle(you);
    TOGETHER {
      d_step {
        before = RECORD_IN_PLACE;
        mark_at_birth[me] = WHO_IS_IN_PLACE(MARK);
        alive = alive | BIT(me);
        change(ATTEMPT, me, IN_PLACE)
      };
      SYNC(sync_destination())
      lock = 0;
      d_step {
        PLACE(P, me) = (writes_p[me] -> STAGED : NOWHERE);
        PLACE(Q, me) = (writes_q[me] -> STAGED : NOWHERE)
      };
#ifndef MUTATE_UNSYNCED_DATA
      SYNC(sync_new(me, P, Q))
#endif
    };
    take_lock(me);
#ifndef MUTATE_OTHERS_UNFINISHED
    settle(you);
#endif
    if
    :: SAME_PREFIXES(me, before) || !CHECKS_PREFIX
    :: goto give_up /* also for any other reason: everything may fail up to here */
    fi;
    TOGETHER {
      stage(me);
#ifndef MUTATE_UNSYNCED_STAGE
      SYNC(sync_new(me, RECORD, MARK))
#endif
      d_step {
        /* Of two saves of one prefix at a time, one is refused. */
        assert(SAME_PREFIXES(me, before));
        before = 0;
        change(OUTCOME, me, STAGED)
      };
      d_step {
#ifndef MUTATE_UNSYNCED_DECISION
        SYNC(sync_attempt(me))
#endif
        /* What fails from here on does not fail the save: it may be reported now. */
        reported = reported | BIT(me)
      }
    };
    finish(me);
    goto over;

give_up:
    bury(me);
    failed = failed | BIT(me);

over:
    lock = 0
  } unless { killed & BIT(me) };
  d_step { alive = alive & ~BIT(me); before = 0; you = 0; end(me) }
}

proctype Open() {
  byte i = 1;
  d_step { lock == 0 -> begin(OPENER) };
  {
    do
    :: i < 3 -> settle(i); i++
    :: else -> break
    od;
    lock = 0
  } unless { killed & BIT(OPENER) };
  d_step { i = 0; end(OPENER) }
}

#if READERS
#define NOTHING 255
#define TEARS(dead, mark)                                                                       \
  ((dead) & ((mark_at_birth[1] != mark -> BIT(1) : 0) | (mark_at_birth[2] != mark -> BIT(2) : 0)))
/* Why names are looked at. */
#define TO_OPEN 0
#define AFTER_FAILED_OPEN 1
#define AFTER_FAILED_READ 2

#define LISTED(i) (PLACE(ATTEMPT, i) == IN_PLACE -> BIT(i) : 0)

inline list_attempts() {
  is_decided = 0;
  is_dead = 0;
  is_alive = 0;
  listed = LISTED(1) | LISTED(2)
}
inline look_at_outcome(n) {
  listed = listed & ~BIT(n);
  is_decided = (IS_DECIDED(n) && READS_PLANS -> is_decided | BIT(n) : is_decided);
  i = (PLACE(ATTEMPT, n) == IN_PLACE && !IS_DECIDED(n) -> n : 0)
}
inline look_at_lock() {
  if
  :: d_step {
      i ->
      is_dead = is_dead | (alive & BIT(i) -> 0 : BIT(i));
      is_alive = is_alive | (alive & BIT(i));
      i = 0
    }
  :: !i
  fi
}

/* The alive ones as well: nobody dies or is done unnoticed. */
#define PROGRESS (generation[RECORD_IN_PLACE] | is_decided << 1 | is_dead << 3 | is_alive << 5)

#define AWAITED(kind, bits)                                                               \
  (waiting & (bits) & 3 -> IF_WAITS(kind, 1) : (waiting & (bits) -> IF_WAITS(kind, 2)     \
   : WHO_IS_IN_PLACE(kind)))

/* A load of the latest: find it by its mark, open both prefixes by one record, read. */
proctype Read() {
  byte why, listed, i, record, mark, version, before, must, got_p, got_q, opened, failed_at;
  byte is_decided, is_dead, is_alive, waiting;

again:
#ifdef LATE_READER
  atomic { WRITERS_HAVE_ENDED -> running = running | BIT(READER) };
#else
  running = running | BIT(READER);
#endif
  {
    d_step { must = reported; failed_at = NOTHING; why = TO_OPEN; before = NOTHING };

look:
    atomic { got_p = 0; got_q = 0; waiting = 0; record = NONE; list_attempts() };
    do
    :: d_step { listed & BIT(1) -> look_at_outcome(1) }; look_at_lock()
    :: d_step { listed & BIT(2) -> look_at_outcome(2) }; look_at_lock()
    :: d_step { !listed -> mark = WHO_IS_IN_PLACE(MARK); listed = is_decided }; break
    od;
    do
    :: atomic {
        listed ->
        if
        :: listed & BIT(1) -> i = 1
        :: listed & BIT(2) -> i = 2
        fi;
        listed = listed & ~BIT(i);
        waiting = waiting | (WAITS(P, i) -> 1 << (2 * i - 2) : 0)
      };
      d_step { waiting = waiting | (WAITS(Q, i) -> 2 << (2 * i - 2) : 0) };
      if
      :: d_step { WAITS(RECORD, i) -> record = i }
      :: else -> record = RECORD_IN_PLACE
      fi;
      if
      :: d_step { WAITS(MARK, i) -> mark = i; i = 0 }
      :: else -> d_step { mark = WHO_IS_IN_PLACE(MARK); i = 0 }
      fi
    :: atomic {
        !listed ->
        record = (record == NONE -> RECORD_IN_PLACE : record);
        version = generation[record] | is_decided << 1 | waiting << 4;
        if
        :: (mark == NONE && RECHECKS_MARK) || (TEARS(is_dead, mark) && RECHECKS_DEAD) ->
          goto doubt
        :: else
        fi
      };
      break
    od;

looked:
    atomic {
      /* It is not overlooked, and not taken for torn but for the attempt of somebody who died. */
      assert(mark != NONE);
      assert(!(TEARS(is_dead, mark) & ~died));
      before = NOTHING;
      mark = 0;
      is_dead = 0;
      is_decided = 0;
      is_alive = 0;
      if
      :: why == AFTER_FAILED_OPEN ->
        assert(version != failed_at && RESTARTS);
        failed_at = version;
        why = TO_OPEN;
        goto look
      :: why == AFTER_FAILED_READ ->
        assert(version != opened);
        failed_at = NOTHING;
        opened = 0;
        why = TO_OPEN;
        goto look
      :: else
      fi;
      opened = version;
      version = 0;
      got_p = AWAITED(P, 5);
      if
      :: got_p == NONE || (got_p != record_p[record] && CHECKS_DIGEST) ->
        why = AFTER_FAILED_OPEN;
        goto look
      :: else
      fi
    };
    atomic {
      got_q = AWAITED(Q, 10);
      if
      :: got_q == NONE || (got_q != record_q[record] && CHECKS_DIGEST) ->
        why = AFTER_FAILED_OPEN;
        goto look
      :: else
      fi
    };
    atomic {
      if
      :: PLACE(P, got_p) == UNLINKED || PLACE(Q, got_q) == UNLINKED ->
        why = AFTER_FAILED_READ;
        goto look
      :: else
      fi;
      assert(got_p == record_p[record] && got_q == record_q[record]);
      assert(!(must & ~committed[record]));
      assert(!(failed & committed[record]));
      goto over
    };

doubt: /* true if nothing had moved from before this look to after it */
    if
    :: atomic { before == NOTHING -> before = PROGRESS; goto look }
    :: else
    fi;
    atomic { list_attempts() };
    do
    :: d_step { listed & BIT(1) -> look_at_outcome(1) }; look_at_lock()
    :: d_step { listed & BIT(2) -> look_at_outcome(2) }; look_at_lock()
    :: atomic {
        !listed ->
        if
        :: IS_SURE(before) -> goto looked
        :: else -> before = PROGRESS; goto look
        fi
      }
    od;

over:
    skip
  } unless { d_step { killed & BIT(READER) -> killed = killed & ~BIT(READER) }; goto again };
  d_step {
    why = 0;
    opened = 0;
    record = 0;
    waiting = 0;
    got_p = 0;
    got_q = 0;
    must = 0;
    failed_at = 0;
    before = 0;
    has_read = 1;
    end(READER)
  }
}
#endif

/* Kills single writers, cuts the power of all, and watches. */
inline kill(who) {
  d_step {
    kills && (running & ~killed & BIT(who)) ->
    killed = killed | BIT(who);
    alive = alive & ~BIT(who);
    died = died | (who < OPENER -> UNDECIDED(who) : 0);
    lock = (lock == who -> 0 : lock);
    kills--
  }
}

proctype Trouble() {
end_of_trouble:
  do
  :: kill(1)
  :: kill(2)
  :: kill(OPENER)
  :: atomic {
      cuts && !all_ended ->
      cuts--;
      killed = running;
      alive = 0;
      lock = 0;
      cut_power();
      died = died | UNDECIDED(1) | UNDECIDED(2)
    }
  /* Whatever happens, at every moment: */
  :: !MARK_TELLS_TRUTH -> assert(MARK_TELLS_TRUTH)
  :: !NO_MIXTURE -> assert(NO_MIXTURE)
  :: !IS_MARKED -> assert(IS_MARKED)
  :: !NOTHING_IS_LOST -> assert(NOTHING_IS_LOST)
  :: !FAILURES_FAILED -> assert(FAILURES_FAILED)
  :: !ONE_DECIDED_AT_MOST -> assert(ONE_DECIDED_AT_MOST)
  :: !(IS_WHOLE(1) && IS_WHOLE(2)) -> assert(IS_WHOLE(1) && IS_WHOLE(2))
  od
}

init {
  byte i;
  atomic {
    committed[0] = BIT(0);
    do
    :: i < THING(ATTEMPT, 0) -> seen[i] = IN_PLACE; durable[i] = IN_PLACE; i = i + 3
    :: else -> break
    od;
    writes_p[1] = 1;
    writes_q[2] = 1;
#ifndef OTHER_PREFIXES
    writes_p[2] = 1;
    writes_q[1] = 1;
#endif
    i = 1;
    /* At most so often: whoever waits cannot count on another blow. */
    select(kills : 0 .. KILLS);
    select(cuts : 0 .. CUTS);
    run Trouble();
    run Save(1);
#if SAVES > 1
    run Save(2);
#endif
#if OPENERS
    run Open();
#endif
#if READERS
    run Read()
#endif
  };
  d_step { WRITERS_HAVE_ENDED && has_read == READERS -> all_ended = 1 };
  /* Whatever happened, the next one who opens it for writing puts it in order. */
  do
  :: i < 3 -> settle(i); i++
  :: else -> break
  od;
  assert(PLACE(ATTEMPT, 1) != IN_PLACE && PLACE(ATTEMPT, 2) != IN_PLACE);
  assert(WHO_IS_IN_PLACE(MARK) != NONE)
}
