// Package shell writes command lines that a person can copy into a POSIX shell: the
// commands that an error tells its reader to try.
//
//	fmt.Println("Try:", shell.Join("holdfast", "outcome", "--key", "order 17"))
//	// Try: holdfast outcome --key 'order 17'
//
// Caveats. A control character is kept as it is inside single quotes: the line then
// means what it must, and may not look like it.
package shell
