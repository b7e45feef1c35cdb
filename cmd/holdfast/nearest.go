package main

// nearest returns the name that somebody probably meant, and false when none is near
// enough to be more than a guess.
func nearest(word string, names []string) (string, bool) {
	best, least := "", 3
	for _, name := range names {
		if d := distance(word, name); d < least && 2*d <= max(len(word), 2) {
			best, least = name, d
		}
	}
	return best, best != ""
}

// distance counts the letters that have to be added, left out, changed or swapped with
// their neighbour to make one word of the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			changed := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				changed++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, changed)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
