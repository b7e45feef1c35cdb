package submissions

import "holdfast/aggregate"

// The codes of refusals, for callers that switch on them: see aggregate.Codes for what
// each means.
const (
	CodeInvalidRequest    = aggregate.CodeInvalidRequest
	CodeNotFound          = aggregate.CodeNotFound
	CodeKeyReused         = aggregate.CodeKeyReused
	CodeWithdrawalClaimed = aggregate.CodeWithdrawalClaimed
	CodeDetailsDiffer     = aggregate.CodeDetailsDiffer
	CodeInFlight          = aggregate.CodeInFlight
	CodeAlreadyResolved   = aggregate.CodeAlreadyResolved
	CodeAttemptRunning    = aggregate.CodeAttemptRunning
	CodeDisputed          = aggregate.CodeDisputed
	CodeReferenceReused   = aggregate.CodeReferenceReused
	CodeDamaged           = aggregate.CodeDamaged
	CodeOutcomeUnknown    = aggregate.CodeOutcomeUnknown
	CodeUnavailable       = aggregate.CodeUnavailable
)
