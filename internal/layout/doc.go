// Package layout holds the test that keeps the house in order: which folder may import
// which. It has no code of its own.
package layout
