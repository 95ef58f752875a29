// Package task loads task files (DESIGN.md, section 4) and structure files (section 5) into the nouns of package harness,
// and turns a structure with a configuration into concrete numbers: launches, macros, build options. Every fault of a file
// is one *Error with file, line, column, reason and remedy. It compiles and runs nothing.
package task
