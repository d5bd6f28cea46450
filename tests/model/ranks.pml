/* SPDX-License-Identifier: Apache-2.0
   Several ranks in one attempt (docs/format/commit.md, "Several ranks"): rank 0 and two others meet
   in its directory, somebody opens the destination for writing meanwhile; ranks fail, are killed or
   stopped for good, power is cut.

     CUTS, KILLS, STOPS   how often
     DEADLINES            0: nobody's time is ever up, so that only the locks tell who is dead
     MUTATE_...           takes one rule away; the file mutations lists them */

#ifndef CUTS
#define CUTS 1
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef STOPS
#define STOPS 1
#endif
#ifndef DEADLINES
#define DEADLINES 1
#endif

#define BIT(n) (1 << (n))
#define RANKS 3
#define OPENER 3

mtype = { nothing, commit, abandoned };

/* Names, as they are seen and as they are durable. */
mtype outcome = nothing;
mtype durable_outcome = nothing;
bit buried;
bit durable_burial;
bit recorded; /* the record in place lists the attempt */
bit durable_record;

byte bytes;         /* ranks whose bytes are written */
byte durable_bytes;
byte reported;      /* ranks that say so */
byte failed;        /* ranks that report an error */

byte lock = RANKS + 1; /* who holds the destination's lock */
#define NOBODY (RANKS + 1)
byte alive;            /* ranks that hold the lock on their file */
byte killed;
byte stopped;
byte ended;
bit all_ended;
byte kills; /* to come */
byte stops;
byte cuts;

/* What ranks returned. */
byte succeeded;
byte gave_up;

#ifdef MUTATE_OUTCOME_REPLACED
#define LINKS_OVER 1
#else
#define LINKS_OVER 0
#endif
#ifdef MUTATE_GONE_IS_FAILURE
#define ASKS_RECORD 0
#else
#define ASKS_RECORD 1
#endif
#ifdef MUTATE_NOBODY_LOOKS_AFTER
#define LOOKS_AFTER 0
#else
#define LOOKS_AFTER 1
#endif
#ifdef MUTATE_SOME_REPORTS
#define WANTED 3
#else
#define WANTED 7
#endif

/* Who is stopped keeps its locks. */
inline end(r) {
  d_step { ended = ended | BIT(r); alive = alive & (~BIT(r) | stopped) }
}
#define IS_OUT(r) ((killed | stopped) & BIT(r))

inline sync_attempt() { durable_outcome = outcome }
inline sync_destination() { durable_record = recorded; durable_burial = buried }

/* All ranks that return say the same. */
inline return_success(r) { d_step { succeeded = succeeded | BIT(r); assert(!gave_up) } }
inline return_failure(r) { d_step { gave_up = gave_up | BIT(r); assert(!succeeded) } }

/* Steps 5 and 6. REQUIRES: the lock. */
inline finish() {
#ifndef MUTATE_BURIED_BEFORE_RECORD
  recorded = 1;
  d_step { sync_destination() };
#endif
  buried = 1;
  d_step { sync_destination() };
#ifdef MUTATE_BURIED_BEFORE_RECORD
  recorded = 1;
  d_step { sync_destination() }
#endif
}

/* Whoever is first. Nobody links into an attempt that is gone. */
inline link_outcome(what) {
  if
  :: d_step { !buried && (outcome == nothing || LINKS_OVER) -> outcome = what }
  :: else
  fi
}

/* What became of it: 0 not known yet, 1 committed, 2 given up. */
inline look_for_outcome() {
  if
  :: d_step { !buried && outcome == commit -> known = 1 }
  :: d_step { !buried && outcome == abandoned -> known = 2 }
  :: else ->
    if
    :: d_step { !buried -> known = 0 }
    :: else -> known = (recorded && ASKS_RECORD -> 1 : 2)
    fi
  fi
}

inline write(r) {
  bytes = bytes | BIT(r);
#ifndef MUTATE_REPORTED_UNSYNCED
  durable_bytes = durable_bytes | BIT(r)
#else
  skip
#endif
}

proctype Leader() {
  byte known;
  {
    write(0);
    d_step { reported = reported | BIT(0) };
    if
    :: (reported & WANTED) == WANTED && !failed -> goto decide
    :: failed -> goto give_up
    :: !buried && outcome != nothing -> goto give_up
    :: LOOKS_AFTER && (~reported & ~alive & 6) -> /* one is dead, unless it reported just before */
      if
      :: (reported & WANTED) == WANTED && !failed -> goto decide
      :: else -> goto give_up
      fi
    :: DEADLINES -> goto give_up
    fi;

decide:
    if
    :: d_step { lock == NOBODY -> lock = 0 }
    :: DEADLINES -> goto give_up
    fi;
    if
    :: goto give_up_locked /* anything may fail up to here */
    :: !buried ->
      d_step {
        if
        :: outcome == nothing ->
          outcome = commit;
          assert(durable_bytes == 7)
        :: else
        fi
      }
    fi;
    if
    :: outcome != commit -> goto give_up_locked
    :: else
    fi;
    d_step { sync_attempt() };
    finish();
    lock = NOBODY;
    return_success(0);
    goto over;

give_up_locked:
    lock = NOBODY;
give_up:
    link_outcome(abandoned);
    d_step { sync_attempt() };
    return_failure(0);

over:
    skip
  } unless { IS_OUT(0) };
  end(0)
}

proctype Follower(byte me) {
  byte known;
  {
    write(me);
    if
    :: reported = reported | BIT(me)
    :: failed = failed | BIT(me)
    fi;
    do
    :: (outcome != nothing || buried) -> /* otherwise looking changes nothing */
      look_for_outcome();
      if
      :: known -> break
      :: else
      fi
    :: LOOKS_AFTER && !(alive & BIT(0)) ->
      look_for_outcome();
      if
      :: known -> break
      :: else -> link_outcome(abandoned)
      fi
    :: DEADLINES -> link_outcome(abandoned); look_for_outcome(); break
    od;
    if
    :: known == 1 ->
#ifndef MUTATE_SEEN_IS_DURABLE
      d_step { durable_outcome = (buried -> durable_outcome : outcome) };
#endif
      return_success(me)
    :: else -> return_failure(me)
    fi
  } unless { IS_OUT(me) };
  end(me)
}

/* Somebody else's save begins. REQUIRES: the lock. */
inline settle() {
  if
  :: !buried && outcome == commit -> d_step { sync_attempt() }; finish()
  :: !buried && outcome == abandoned && !alive -> buried = 1; d_step { sync_destination() }
  :: !buried && outcome == nothing && !(alive & BIT(0)) -> buried = 1; d_step { sync_destination() }
  :: else
  fi
}

proctype Open() {
  {
    if
    :: d_step { lock == NOBODY -> lock = OPENER }; settle(); lock = NOBODY
    :: skip /* it comes too early, or its time is up */
    fi
  } unless { IS_OUT(OPENER) };
  end(OPENER)
}

inline kill(who) {
  d_step {
    kills && !IS_OUT(who) && !all_ended ->
    killed = killed | BIT(who);
    alive = alive & ~BIT(who);
    lock = (lock == who -> NOBODY : lock);
    kills--
  }
}
inline stop(who) {
  d_step { stops && (alive & BIT(who)) && !all_ended -> stopped = stopped | BIT(who); stops-- }
}

proctype Trouble() {
end_of_trouble:
  do
  :: kill(0)
  :: kill(1)
  :: kill(2)
  :: kill(OPENER)
  :: stop(0)
  :: stop(1)
  :: atomic {
      cuts && !all_ended ->
      cuts--;
      killed = 15;
      alive = 0;
      lock = NOBODY;
      if
      :: outcome = durable_outcome
      :: durable_outcome = outcome
      fi;
      if
      :: recorded = durable_record
      :: durable_record = recorded
      fi;
      if
      :: buried = durable_burial
      :: durable_burial = buried
      fi;
      bytes = durable_bytes
    }
  od
}

init {
  atomic {
    /* At most so often: whoever waits cannot count on another blow. */
    select(kills : 0 .. KILLS);
    select(stops : 0 .. STOPS);
    select(cuts : 0 .. CUTS);
    alive = 7;
    run Trouble();
    run Leader();
    run Follower(1);
    run Follower(2);
    run Open()
  };
  /* The stopped ones are killed in the end. */
  d_step { ended == 15 -> all_ended = 1; alive = 0; lock = NOBODY };
  settle();
  assert(buried);
  assert(!succeeded || recorded);
  assert(!gave_up || !recorded)
}
