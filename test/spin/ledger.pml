/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger of a MachineSet (docs/RELIABILITY.md 2a): two executors without a leader, each of which may stop at any step
 * and begin anew, while people scale 1, 2, 1. Reads are fresh, the commit is a compare-and-swap on the set, execution is
 * repeated by anyone. The guards are macros, so that run.sh can take each away and see the properties fail.
 */
#define ORDINALS 3
#define MOST 2

byte replicas = 1;
byte rv = 0;              /* of the set */
byte next = 0;
bool alive[ORDINALS];
bool retired[ORDINALS];   /* for the property R-S17 only: nobody reads it */
bool exists[ORDINALS];    /* the Machine of that ordinal */
byte crashes = 1;
bool calm = false;

inline count(n) {
	n = alive[0] + alive[1] + alive[2]
}

#define machines (exists[0] + exists[1] + exists[2])

/* one invocation of scale-machineset after the other */
active [2] proctype executor() {
	byte seen_rv, seen_next, want, n, k;
	bool a[ORDINALS];
read:
	atomic {
		seen_rv = rv; seen_next = next; want = replicas; k = 0;
		a[0] = alive[0]; a[1] = alive[1]; a[2] = alive[2];
		n = a[0] + a[1] + a[2]
	}
	if
	:: n == want -> skip
	:: n != want && (seen_next < ORDINALS || n > want) ->
		atomic {
#ifndef NO_CAS
			if
			:: rv != seen_rv -> goto read
			:: else
			fi;
#endif
			if
			:: n < want ->
				assert(!retired[seen_next]);             /* R-S17 */
				alive[seen_next] = true;
				next = seen_next + 1;
				assert(alive[0] + alive[1] + alive[2] <= replicas) /* R-S4 */
			:: n > want ->
				if
				:: a[0] -> alive[0] = false; retired[0] = true
				:: !a[0] && a[1] -> alive[1] = false; retired[1] = true
				:: else -> alive[2] = false; retired[2] = true
				fi
			fi;
			rv = rv + 1;
			count(n);
			assert(n <= MOST)                                  /* R-S4 */
		}
		goto read
	fi;
	/* carry out what was read: it is committed. Creating what exists, or deleting what does not, is nothing. */
	seen_rv = 0; want = 0; n = 0;
	do
	:: atomic { k < ORDINALS && a[k] -> exists[k] = true; k++ }
	:: atomic { k < ORDINALS && !a[k] && k < seen_next -> assert(!exists[k] || !alive[k]); exists[k] = false; k++ } /* R-S6 */
#ifdef NO_NEXT
	:: atomic { k < ORDINALS && !a[k] && k >= seen_next -> assert(!exists[k] || !alive[k]); exists[k] = false; k++ }
#else
	:: atomic { k < ORDINALS && !a[k] && k >= seen_next -> k++ } /* newer than this ledger: not judged */
#endif
	:: k == ORDINALS -> break
	:: atomic { crashes > 0 -> crashes--; goto read }
	od;
	goto read
}

active proctype people() {
	atomic { replicas = 2; rv++ };
	atomic { replicas = 1; rv++ };
	calm = true
}

/* R-L1: as many Machines as wanted, in the end and from then on. Checked under weak fairness. */
ltl settles { <>[] (calm && machines == replicas) }
