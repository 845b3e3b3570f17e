// Package plan decides who may serve each request, in what order, with what share, and why.
//
// Compute is pure: the same World gives the same Plan to the last byte. Admission says how what is known of a request
// (client country, tenant, data label, service) becomes a residency class or a refusal; a Decision says for one service
// and class, seen from one viewpoint, which clusters serve, which stand by in what order, and which are refused, each
// with its reasons as data. Reasons are made here and nowhere else: explain, metrics, headers and logs render them.
//
// The files follow the way of a decision: residency (which class), terrain and question (what it is decided from), rank
// (who is permitted, how near), target (what share each should get: a minimum-cost flow over all viewpoints), move (how
// much of the way there may be gone now), decide (choices and reasons), answer and compute (what need not be done again).
//
// A Memo only saves work: planning with one gives what planning from scratch gives. It has one owner, the loop of
// internal/pipeline; a Plan is immutable and safe for any number of readers.
package plan
