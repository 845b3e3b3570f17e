package policies

// nearest is the candidate closest to a name by edit distance, the first of equals; empty where none is close enough
// to be what was meant.
func nearest(name string, candidates []string) string {
	if len(name) > 64 { // no name is that long
		return ""
	}
	best, bestDistance := "", max((len(name)+1)/3, 1)+1
	for _, c := range candidates {
		if d := editDistance(name, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// editDistance is Levenshtein's, over bytes, in one row of memory.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] || a[i]^0x20 == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// asStrings converts names for nearest.
func asStrings[N ~string](names []N) []string {
	s := make([]string, len(names))
	for i, n := range names {
		s[i] = string(n)
	}
	return s
}
