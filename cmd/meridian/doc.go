// Command meridian is the one binary: the control plane, and what operators type. A file a verb; serve only wires.
//
// Exit codes: 0 all is well; 1 what was asked for failed; 2 the command was called wrongly; 3 validate or simulate found
// something that an operator should look at.
package main
