/* SPDX-License-Identifier: Apache-2.0
   Who may save into a run directory (docs/format/commit.md, "One run, one job"): three jobs want the
   same one, any of them may take it over from one that lives, jobs are killed, power is cut. A job
   that is slow, or stopped for a while, is one whose next step comes late.

     CUTS, KILLS   how often
     MUTATE_...    takes one rule away; the file mutations lists them */

#ifndef CUTS
#define CUTS 1
#endif
#ifndef KILLS
#define KILLS 2
#endif

#define BIT(n) (1 << (n))
#define NOBODY 0

byte lock; /* of the run directory: which job has it */

/* The owner file, as it is seen and as it is durable: who wrote it, and its epoch. */
byte owner;
byte epoch;
byte durable_owner;
byte durable_epoch;

byte alive;   /* jobs that hold the lock on the owner file that they wrote */
byte running;
byte ended;
byte killed;
bit all_ended;
byte kills; /* to come */
byte cuts;

/* What happened, for the assertions. */
byte last_to_take; /* whose taking was the last to be reported */
byte deciding;     /* jobs between the decision and the end of their moves */

#ifdef MUTATE_LOCK_NOT_HELD_TO_TAKE
#define TAKES_UNDER_LOCK 0
#else
#define TAKES_UNDER_LOCK 1
#endif
#ifdef MUTATE_EPOCH_UNCHECKED
#define CHECKS_EPOCH 0
#else
#define CHECKS_EPOCH 1
#endif
#ifdef MUTATE_EPOCH_NOT_RAISED
#define RAISE 0
#else
#define RAISE 1
#endif

inline lock_run(me) { atomic { lock == NOBODY -> lock = me } }

inline take(me) {
  if
  :: TAKES_UNDER_LOCK -> lock_run(me)
  :: !TAKES_UNDER_LOCK
  fi;
  if
  :: (alive & BIT(owner)) && owner != NOBODY -> goto refused
  :: true -> mine = epoch + RAISE /* nobody has it, its owner is dead, or it is taken over */
  fi;
  d_step { owner = me; epoch = mine; alive = alive | BIT(me) };
  d_step { durable_owner = owner; durable_epoch = epoch };
  last_to_take = me;
  if
  :: TAKES_UNDER_LOCK -> lock = NOBODY
  :: !TAKES_UNDER_LOCK
  fi
}

/* Steps 3 to 6 of a save. */
inline save(me) {
#ifdef MUTATE_EPOCH_CHECKED_BEFORE_LOCK
  if
  :: mine != epoch -> goto taken_over
  :: else
  fi;
  lock_run(me);
#else
  lock_run(me);
  if
  :: mine != epoch && CHECKS_EPOCH -> goto taken_over
  :: else
  fi;
#endif
  d_step {
    /* Whoever was told that it owns the run is the only one who saves. */
    assert(last_to_take == me);
    assert(!deciding);
    deciding = deciding | BIT(me)
  };
#ifdef MUTATE_LOCK_LET_GO_AT_DECISION
  lock = NOBODY;
#endif
  skip; /* the moves */
  d_step { deciding = deciding & ~BIT(me); lock = (lock == me -> NOBODY : lock) }
}

proctype Job(byte me) {
  byte mine;
  running = running | BIT(me);
  {
    take(me);
    save(me);
    save(me);
    goto over;

taken_over:
    assert(owner != me); /* nobody is refused who was not taken over */
refused:
    lock = (lock == me -> NOBODY : lock);
over:
    skip
  } unless { killed & BIT(me) };
  d_step {
    alive = alive & ~BIT(me);
    running = running & ~BIT(me);
    ended = ended | BIT(me);
    deciding = deciding & ~BIT(me);
    mine = 0
  }
}

inline kill(who) {
  d_step {
    kills && (running & ~killed & BIT(who)) ->
    killed = killed | BIT(who);
    alive = alive & ~BIT(who);
    deciding = deciding & ~BIT(who);
    lock = (lock == who -> NOBODY : lock);
    kills--
  }
}

proctype Trouble() {
end_of_trouble:
  do
  :: kill(1)
  :: kill(2)
  :: kill(3)
  :: atomic {
      cuts && !all_ended ->
      cuts--;
      killed = running;
      alive = 0;
      deciding = 0;
      lock = NOBODY;
      if
      :: owner = durable_owner; epoch = durable_epoch
      :: durable_owner = owner; durable_epoch = epoch
      fi
    }
  od
}

init {
  atomic {
    /* At most so often: whoever waits cannot count on another blow. */
    select(kills : 0 .. KILLS);
    select(cuts : 0 .. CUTS);
    run Trouble();
    run Job(1);
    run Job(2);
    run Job(3)
  };
  d_step { ended == (BIT(1) | BIT(2) | BIT(3)) -> all_ended = 1 };
  assert(lock == NOBODY)
}
