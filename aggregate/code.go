package aggregate

import "log/slog"

// Code says in which way a command was refused or did not end. Programs act on the
// code, never on a message.
type Code string

const (
	CodeInvalidRequest    Code = "invalid-request"
	CodeUnauthenticated   Code = "unauthenticated"
	CodeForbidden         Code = "forbidden"
	CodeNotFound          Code = "not-found"
	CodeKeyReused         Code = "key-reused"
	CodeWithdrawalClaimed Code = "withdrawal-claimed"
	CodeDetailsDiffer     Code = "details-differ"
	CodeInFlight          Code = "in-flight"
	CodeAlreadyResolved   Code = "already-resolved"
	CodeAttemptRunning    Code = "attempt-running"
	CodeDisputed          Code = "disputed"
	CodeReferenceReused   Code = "reference-reused"
	CodeInsufficientFunds Code = "insufficient-funds"
	CodeDamaged           Code = "damaged"
	CodeOutcomeUnknown    Code = "outcome-unknown"
	CodeUnavailable       Code = "unavailable"
)

// CodeInfo is what a code means to each of the ways out: HTTP, the command line, logs
// and metrics are all derived from it (SPEC E).
type CodeInfo struct {
	Code Code
	// HTTPStatus is the status of the response that carries the code.
	HTTPStatus int
	// ExitCode is the exit status of a command that ends with the code.
	ExitCode int
	// Level is the level at which the command is logged.
	Level slog.Level
	// Title is the same short sentence for every occurrence of the code.
	Title string
}

// Codes returns the table of refusals, in the order of SPEC E.
func Codes() []CodeInfo {
	return []CodeInfo{
		{CodeInvalidRequest, 400, 2, slog.LevelInfo, "The request is malformed."},
		{CodeUnauthenticated, 401, 6, slog.LevelWarn, "The caller is not known."},
		{CodeForbidden, 403, 6, slog.LevelWarn, "The caller may not do this."},
		{CodeNotFound, 404, 3, slog.LevelInfo, "There is no such withdrawal, key or account."},
		{CodeKeyReused, 409, 4, slog.LevelWarn, "The key stands for another submission."},
		{CodeWithdrawalClaimed, 409, 4, slog.LevelWarn, "Another key holds the withdrawal."},
		{CodeDetailsDiffer, 409, 4, slog.LevelWarn, "The withdrawal was requested with other details."},
		{CodeInFlight, 409, 5, slog.LevelInfo, "The key's submission is in flight."},
		{CodeAlreadyResolved, 409, 4, slog.LevelInfo, "The key already has an outcome, and it stands."},
		{CodeAttemptRunning, 409, 4, slog.LevelInfo, "An attempt may still be running."},
		{CodeDisputed, 409, 4, slog.LevelError, "The withdrawal is disputed; a person must resolve it."},
		{CodeReferenceReused, 409, 4, slog.LevelWarn, "The reference was used with other details."},
		{CodeInsufficientFunds, 409, 4, slog.LevelInfo, "The account does not hold enough."},
		{CodeDamaged, 500, 7, slog.LevelError, "The stream is damaged; no command may act on it."},
		{CodeOutcomeUnknown, 502, 5, slog.LevelError, "The send ended, and nobody knows whether the money left."},
		{CodeUnavailable, 503, 8, slog.LevelError, "The log cannot be reached; the same key is safe to retry."},
	}
}

// Info returns the code's row of the table. A code that is not in the table, which a
// test rules out, is reported as damaged.
func (c Code) Info() CodeInfo {
	var damaged CodeInfo
	for _, row := range Codes() {
		if row.Code == c {
			return row
		}
		if row.Code == CodeDamaged {
			damaged = row
		}
	}
	return damaged
}
