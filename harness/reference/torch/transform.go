package torch

import (
	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"errors"
)

// failResolve places an undefined name, with the nearest known one.
func (p *Program) failResolve(err error) error {
	var list resolve.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return p.errorAt(list[0].Pos, list[0].Msg)
	}
	var one resolve.Error
	if errors.As(err, &one) {
		return p.errorAt(one.Pos, one.Msg)
	}
	return &Error{Reason: err.Error()}
}

// transformStmt turns comparisons into calls: in Starlark a comparison is a bool, of arrays it is an array.
func transformStmt(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		transformExpr(&s.LHS)
		transformExpr(&s.RHS)
	case *syntax.DefStmt:
		for i := range s.Params {
			transformExpr(&s.Params[i])
		}
		transformAll(s.Body)
	case *syntax.ExprStmt:
		transformExpr(&s.X)
	case *syntax.ForStmt:
		transformExpr(&s.X)
		transformAll(s.Body)
	case *syntax.WhileStmt:
		transformExpr(&s.Cond)
		transformAll(s.Body)
	case *syntax.IfStmt:
		transformExpr(&s.Cond)
		transformAll(s.True)
		transformAll(s.False)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			transformExpr(&s.Result)
		}
	}
}

func transformAll(list []syntax.Stmt) {
	for _, s := range list {
		transformStmt(s)
	}
}

func transformList(list []syntax.Expr) {
	for i := range list {
		transformExpr(&list[i])
	}
}

func transformExpr(e *syntax.Expr) {
	if *e == nil {
		return
	}
	switch x := (*e).(type) {
	case *syntax.BinaryExpr:
		transformExpr(&x.X)
		transformExpr(&x.Y)
		switch x.Op {
		case syntax.LT, syntax.LE, syntax.GT, syntax.GE, syntax.EQL, syntax.NEQ:
			op := &syntax.Literal{Token: syntax.STRING, TokenPos: x.OpPos, Raw: `"` + x.Op.String() + `"`, Value: x.Op.String()}
			*e = &syntax.CallExpr{Fn: &syntax.Ident{Name: nameCompare, NamePos: x.OpPos}, Lparen: x.OpPos, Args: []syntax.Expr{op, x.X, x.Y}, Rparen: x.OpPos}
		}
	case *syntax.CallExpr:
		transformExpr(&x.Fn)
		for i, a := range x.Args {
			if named, ok := a.(*syntax.BinaryExpr); ok && named.Op == syntax.EQ { // f(name=value)
				transformExpr(&named.Y)
				continue
			}
			transformExpr(&x.Args[i])
		}
	case *syntax.Comprehension:
		transformExpr(&x.Body)
		for _, c := range x.Clauses {
			switch c := c.(type) {
			case *syntax.ForClause:
				transformExpr(&c.X)
			case *syntax.IfClause:
				transformExpr(&c.Cond)
			}
		}
	case *syntax.CondExpr:
		transformExpr(&x.Cond)
		transformExpr(&x.True)
		transformExpr(&x.False)
	case *syntax.DictEntry:
		transformExpr(&x.Key)
		transformExpr(&x.Value)
	case *syntax.DictExpr:
		transformList(x.List)
	case *syntax.DotExpr:
		transformExpr(&x.X)
	case *syntax.IndexExpr:
		transformExpr(&x.X)
		transformExpr(&x.Y)
	case *syntax.LambdaExpr:
		transformExpr(&x.Body)
	case *syntax.ListExpr:
		transformList(x.List)
	case *syntax.ParenExpr:
		transformExpr(&x.X)
	case *syntax.SliceExpr:
		transformExpr(&x.X)
		transformExpr(&x.Lo)
		transformExpr(&x.Hi)
		transformExpr(&x.Step)
	case *syntax.TupleExpr:
		transformList(x.List)
	case *syntax.UnaryExpr:
		transformExpr(&x.X)
	}
}
