/* SPDX-License-Identifier: Apache-2.0
 *
 * One Machine on a cloud without tokens (docs/RELIABILITY.md 2b): two executors without a leader claim, which is to record the intent, then
 * ask the cloud; whatever they do a request may be lost, or its answer, and each may stop and begin anew. A person may delete the Machine.
 * That others leave a claim alone for its minute is not here: it saves calls, and nothing below needs it.
 * There is no clock that grows, only how much is left of each time, so the model is finite: a tick takes one off all of them. LATE
 * lets the network keep a request as long as it likes, which nobody can guard against (RELIABILITY 0.4): then what holds in the
 * end is the sweeper's work. The guards are macros, so that run.sh can take each away and see the properties fail.
 */
#define ATTEMPTS 2
#define DEADLINE 1        /* of an invocation from its claim on, and so of its request */
#define LAG 1             /* of what the cloud's list shows */
#ifndef HORIZON
#define HORIZON 2         /* DEADLINE + LAG */
#endif

bool machine = true;      /* it is there, with its finalizer */
bool deleting = false;
bool open = false;        /* an attempt has no outcome */
byte attempt = 0;         /* as many were begun */
byte recorded = 0;        /* the attempt whose instance is the Machine's */
byte horizon_left = 0;
bool stale[3];            /* somebody wrote the Machine since this executor read it */

bool alive[3];            /* the instance of an attempt */
byte lag_left[3];
bool flying[3];           /* the request of an attempt is on its way */
byte fly_left[3];
bool unsent[3];           /* the invocation that began the attempt is about to send it */
#ifdef LATE
byte faults = 0;
#else
byte faults = 1;          /* lost requests, lost answers, crashes, invocations that are too slow to ask */
#endif
bool sighted[3];

#define instances (alive[1] + alive[2])
#define inflight (flying[1] + flying[2])
#define visible(k) (alive[k] && lag_left[k] == 0)

inline wrote() { stale[1] = true; stale[2] = true }

#ifdef NO_CAS
#define current true
#else
#define current (!stale[me])
#endif

/* one invocation of provision-machine after the other */
proctype executor(byte me) {
	byte found, mine, left;
	bool is_open, gone;
read:
	found = 0; mine = 0;
	if
	:: atomic { !machine -> goto done }
	:: atomic { machine && deleting -> stale[me] = false; is_open = open && horizon_left > 0; goto looked }
	:: atomic { machine && !deleting && recorded == 0 -> stale[me] = false; is_open = open && horizon_left > 0; goto looked }
	fi;
looked:
#ifdef NO_HORIZON
	is_open = false;
#endif
	atomic { /* what the cloud says now */
		if
		:: visible(1) -> found = 1
		:: !visible(1) && visible(2) -> found = 2
		:: else
		fi
	};
	if
	:: atomic { deleting && (found != 0 || recorded != 0 && alive[recorded]) ->
		if
		:: found != 0 -> alive[found] = false
		:: else -> alive[recorded] = false
		fi;
		goto read }
	:: atomic { deleting && found == 0 && !(recorded != 0 && alive[recorded]) && is_open -> goto read }
	:: atomic { deleting && found == 0 && !(recorded != 0 && alive[recorded]) && !is_open ->
		if
		:: current && machine ->
#ifndef LATE
			assert(instances == 0 && inflight == 0);         /* R-S2, R-S15 */
#endif
			machine = false; wrote()
		:: else
		fi;
		goto read }
	:: atomic { !deleting && found != 0 ->
		if
		:: current && recorded == 0 -> recorded = found; open = false; wrote()
		:: else
		fi;
		goto read }
	:: atomic { !deleting && found == 0 && (is_open || attempt == ATTEMPTS) -> goto read }
	:: atomic { !deleting && found == 0 && !is_open && attempt < ATTEMPTS ->
		if
		:: current && recorded == 0 ->
			attempt++; mine = attempt; open = true; horizon_left = HORIZON; wrote();
			fly_left[mine] = DEADLINE; unsent[mine] = true       /* the invocation's, from here on */
		:: else -> goto read
		fi }
	fi;
	if
	:: atomic { faults > 0 -> faults--; unsent[mine] = false; goto read } /* killed before the call */
#ifdef LATE
	:: atomic { unsent[mine] = false; flying[mine] = true }
#else
	:: atomic { fly_left[mine] > 0 -> unsent[mine] = false; flying[mine] = true }
	:: atomic { fly_left[mine] == 0 -> unsent[mine] = false; goto read }  /* too late to ask */
#endif
	fi;
	if
	:: atomic { !flying[mine] && alive[mine] ->                    /* the answer */
		stale[me] = false;                                           /* on a conflict the Machine is read once more */
		if
		:: machine && recorded == 0 -> recorded = mine; open = false; wrote()
		:: else
		fi }
	:: atomic { faults > 0 -> faults-- }                           /* killed, or the answer is lost */
	:: atomic { !flying[mine] && !alive[mine] }                    /* no answer */
	:: atomic { fly_left[mine] == 0 }                              /* it waited long enough */
	fi;
	goto read;
done:
	skip
}

/* each request takes effect before its deadline, or is lost */
proctype network() {
	byte k;
end:
	do
	:: atomic { flying[1] -> k = 1; goto land }
	:: atomic { flying[2] -> k = 2; goto land }
	od;
land:
	atomic {
		flying[k] = false;
		if
		:: alive[k] = true; lag_left[k] = LAG;
#ifndef LATE
			assert(instances <= 1);                              /* R-S1 */
			assert(machine)                                      /* R-S2 */
#endif
		:: faults > 0 -> faults--
		fi
	}
	goto end
}

inline less(x) {
	if
	:: x > 0 -> x--
	:: else
	fi
}

#define slow(k) (unsent[k] && fly_left[k] == 1)

proctype clock() {
end:
	do
#ifdef LATE
	:: atomic { true ->
#else
	:: atomic { !(flying[1] && fly_left[1] == 0) && !(flying[2] && fly_left[2] == 0) && (faults > 0 || !slow(1) && !slow(2)) ->
		if
		:: slow(1) || slow(2) -> faults--
		:: else
		fi;
#endif
		less(horizon_left); less(lag_left[1]); less(lag_left[2]); less(fly_left[1]); less(fly_left[2]) }
	od
}

proctype person() {
	if
	:: atomic { deleting = true; wrote() }
	:: skip
	fi
}

/* what nobody owns, or is not the recorded one, goes after it was seen twice */
proctype sweeper() {
	byte k = 1;
end:
#ifndef NO_SWEEPER
	do
	:: atomic { visible(k) && (!machine || recorded != 0 && recorded != k) && !sighted[k] -> sighted[k] = true; k = 3 - k }
	:: atomic { visible(k) && (!machine || recorded != 0 && recorded != k) && sighted[k] -> alive[k] = false; sighted[k] = false; k = 3 - k }
	:: atomic { !(visible(k) && (!machine || recorded != 0 && recorded != k)) -> sighted[k] = false; k = 3 - k }
	od
#else
	skip
#endif
}

init {
	atomic { run executor(1); run executor(2); run network(); run clock(); run person(); run sweeper() }
}

/* R-L1, R-L2: one instance and its record, or nothing at all, in the end and from then on. Checked under weak fairness. */
ltl settles { <>[] ((deleting && !machine && instances == 0) || (!deleting && recorded != 0 && instances == 1 && alive[recorded])) }
