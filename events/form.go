package events

// The forms of the events in the log: what the tags of each type say, in that order.

func (e *WithdrawalRequested) fields(o *object) {
	text(o, "tenant", &e.Tenant)
	text(o, "withdrawal", &e.Withdrawal)
	text(o, "account", &e.Account)
	text(o, "reference", &e.Reference)
	amount(o, "amount", &e.Amount)
	text(o, "currency", &e.Currency)
	text(o, "destination", &e.Destination)
}

func (e *KeyReserved) fields(o *object) {
	text(o, "tenant", &e.Tenant)
	text(o, "key", &e.Key)
	text(o, "withdrawal", &e.Withdrawal)
	text(o, "fingerprint", &e.Fingerprint)
	number(o, "at", &e.At)
}

func (e *KeyClaimed) fields(o *object) {
	text(o, "key", &e.Key)
	text(o, "fingerprint", &e.Fingerprint)
}

func (e *SendAttempted) fields(o *object) {
	number(o, "attempt", &e.Attempt)
	timestamp(o, "deadline", &e.Deadline)
	text(o, "token", &e.Token)
	text(o, "rail", &e.Rail)
}

func (e *SendRefused) fields(o *object) {
	number(o, "attempt", &e.Attempt)
	text(o, "reason", &e.Reason)
	optionalResponse(o, "response", &e.Response)
}

func (e *SendUnconfirmed) fields(o *object) {
	number(o, "attempt", &e.Attempt)
	text(o, "cause", &e.Cause)
}

func (e *OutcomeResolved) fields(o *object) {
	text(o, "key", &e.Key)
	text(o, "result", &e.Result)
	optionalText(o, "reference", &e.Reference)
	response(o, "response", &e.Response)
	text(o, "source", &e.Source)
	optionalNumber(o, "attempt", &e.Attempt)
	optionalText(o, "reason", &e.Reason)
	optionalText(o, "evidence", &e.Evidence)
	optionalAmount(o, "fee", &e.Fee)
	optionalTimestamp(o, "rail_time", &e.RailTime)
}

func (e *Released) fields(o *object) {
	text(o, "key", &e.Key)
	text(o, "reason", &e.Reason)
	text(o, "evidence", &e.Evidence)
}

func (e *LateOutcomeReported) fields(o *object) {
	text(o, "key", &e.Key)
	number(o, "attempt", &e.Attempt)
	text(o, "result", &e.Result)
	optionalText(o, "reference", &e.Reference)
	optionalText(o, "detail", &e.Detail)
	optionalResponse(o, "response", &e.Response)
	optionalAmount(o, "fee", &e.Fee)
	optionalTimestamp(o, "rail_time", &e.RailTime)
}
