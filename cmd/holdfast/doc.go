// Command holdfast is the ledger on the command line: request a withdrawal, submit it at
// most once, look up the truth about it, and resolve or release what is in flight.
//
//	holdfast request --account alice --reference order-17 --amount 10.25 --currency EUR --destination DE89370400440532013000
//	holdfast submit --key req-1 --withdrawal wabc… --rail simulated:book.jsonl
//	holdfast outcome --key req-1
//
// Everything has a flag, and an argument without one is an error. Each command takes
// --log URL (HOLDFAST_LOG), --tenant NAME (HOLDFAST_TENANT), --actor NAME
// (HOLDFAST_ACTOR) and --json. `holdfast demo` shows all of it at work.
//
// # What goes where
//
// Standard output has the result and nothing else. Standard error has everything else:
// that an answer was a replay, the facts before a confirmation, progress, and errors. The
// exit status is that of the error's code in aggregate.Codes. An error is one line
// "Error: … (code)", then its facts, one a line, then "Try:" and a command line.
//
// # JSON
//
// With --json a result is one object on one line. Fields may be added; none is renamed,
// removed or given another meaning. Amounts are decimal strings. Times are RFC 3339 in
// UTC with six decimals. A field marked with ? is left out where it has nothing to say.
//
//	request     withdrawal tenant account reference amount currency destination requested_at
//	submit,     withdrawal key result reference? resolved_at actor source attempt?
//	resolve     reason? evidence? response{media_type, text? or base64?}
//	outcome,    what request has, and: state since disputed holder? claim?{key since attempt?}
//	claimed-by  outcome?{as submit} dispute?{since key attempt result reference? detail?}
//	            past_claims[{key since attempt? released_at released_by reason evidence}]
//	            late_answers[{at key attempt result reference? detail? contradicts}]
//	            closed_disputes[{as dispute, closed_at closed_by reason evidence}]
//	            actions[wait, submit, resolve, release] release_from?
//	            attempt is {number rail token started_at deadline reported? detail? ended_at?}
//	in-flight   in_flight[as claimed-by], disputed first, then oldest first
//	release     withdrawal state key since attempt? released_at released_by reason evidence
//	history     withdrawal events[{revision id type schema recorded_at actor correlation_id?
//	            causation_id? traceparent? prev? digest data}]
//	verify      clean events streams findings[{code stream? revision reason}] open_disputes?
//	doctor      log well checks[{check grade detail remedy?}]
//	log copy    from to copy events streams appended withdrawals keys moved_on ledger already?
//	rail-book   entries[{time result reference? reason? withdrawal account amount currency
//	            destination attempt}] left{withdrawal: how often it left}
//	demo        ok steps[{number title ok commands[] checks[{claim ok saw?}]}]
//	version     version go platform revision? time? modified?
//
// Standard error is then lines of JSON as well, each an object with one of
//
//	error       {code message cause? holder? withdrawal? key? fields?[] state? since? until?
//	            tenant? log? try}
//	note        a sentence, such as that the answer is a replay; beside it try?
//	facts       what claimed-by has; beside it about, rail?{rail verdict? reference? attempt?
//	            detail? error?} and warning?: what a person sees before they confirm
//	progress    {events total? per_second seconds_left?}
//	level       a diagnostic, with time and msg
//
// The object with error is the last one, and is there exactly when the exit status is not
// 0. The results of request, submit and resolve hold nothing that changes, so that a
// replay prints the same bytes.
//
// Caveats. A relative FILE is another log in another folder. The simulated rail moves no
// money. On a terminal, progress is a bar and the confirmation a prompt, whatever --json
// says.
package main
