// Package propose turns a campaign's situation into a prompt, and a model's reply into a Draft: a structure file, or one
// configuration to try. It knows kernels as text. What needs a task's meaning (whether a header loads, whether the rules are kept) is
// given by the caller as a function.
//
//	Situation ──Author/Analyst──> llm.Request ──model──> llm.Reply ──Parse──> Draft, or Complaints for the model
//
// A reply is repaired where its meaning is certain: what the model meant can be read off the reply and the sources that it was
// shown. Everything else is a Complaint with what to send instead.
package propose
