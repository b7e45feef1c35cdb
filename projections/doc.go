// Package projections keeps the read side: tables that are made from the log, so that
// lists and totals need not read all of it. The log is the truth; every table here can be
// thrown away and made again, to the same rows (SPEC D1).
//
// A [Projection] is a name, a version, and a pure function from what happened to rows.
// The rows of one version are in one SQLite file beside the log, together with the
// position up to which the log is in them; both change in one transaction. A rebuild
// writes another file beside the live one, and readers go over to it at once (D6).
//
//	set, err := projections.Open(ctx, "holdfast.db-projections", log, nil)
//	...
//	defer set.Close()
//	list, err := set.InFlight(ctx, tenant, projections.AtLeast(position))
//
// Caveats. A projection lags behind the log, so nothing that decides may read one.
// An event that cannot be understood stops a projection, which then says which event it
// is; it is never passed over (D3). A file that was written to by somebody else is not
// noticed before [Set.Verify].
package projections
