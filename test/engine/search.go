// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	condition = regexp.MustCompile(`^\s*([a-z_]+)\s*=\s*("[^"]*"|[^\s"]+)\s*`)
	sorting   = regexp.MustCompile(`^\s*sortby ([a-z_]+)( asc)?\s*`)
	paging    = regexp.MustCompile(`^\s*page (\d+)\s*`)
	joint     = regexp.MustCompile(`^(?i)and\s+`)
)

// list answers with what of all a search asks for, sorted and paged.
func (e *Engine) list(r request, one string, all []content) (string, content, *fault) {
	q := r.URL.Query()
	page := 1
	for rest := q.Get("search"); strings.TrimSpace(rest) != ""; {
		if found := sorting.FindStringSubmatch(rest); found != nil {
			slices.SortStableFunc(all, func(a, b content) int { return cmp.Compare(text(a, found[1]), text(b, found[1])) })
			rest = rest[len(found[0]):]
		} else if found := paging.FindStringSubmatch(rest); found != nil {
			page, _ = strconv.Atoi(found[1]) // digits
			rest = rest[len(found[0]):]
		} else if found := condition.FindStringSubmatch(rest); found != nil {
			value := strings.Trim(found[2], `"`)
			all = slices.DeleteFunc(slices.Clone(all), func(c content) bool { return !matches(value, e.values(c, found[1])) })
			rest = joint.ReplaceAllString(rest[len(found[0]):], "")
		} else {
			return "", nil, &fault{http.StatusBadRequest, "Operation Failed", "[" + q.Get("search") + "]"}
		}
	}
	if most, err := strconv.Atoi(q.Get("max")); err == nil && most >= 0 {
		from := min((page-1)*most, len(all))
		all = all[from:min(from+most, len(all))]
	}
	if len(all) == 0 {
		return plural(one), content{}, nil
	}
	return plural(one), content{one: all}, nil
}

// values returns what a search for a field looks at. What only searches see stands in parentheses.
func (e *Engine) values(c content, field string) []string {
	if hidden, is := c["("+field+")"].([]string); is {
		return hidden
	}
	return []string{text(c, field)}
}

// matches compares as SQL's LIKE does, with "*" for its "%".
func matches(pattern string, values []string) bool {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
	like, err := regexp.Compile(`(?s)^` + quoted + `$`)
	return err == nil && slices.ContainsFunc(values, like.MatchString)
}

// bare returns v without what only searches see.
func bare(v any) any {
	switch v := v.(type) {
	case content:
		all := content{}
		for name, it := range v {
			if !strings.HasPrefix(name, "(") {
				all[name] = bare(it)
			}
		}
		return all
	case []content:
		all := []content{}
		for _, it := range v {
			all = append(all, bare(it).(content)) // as it came
		}
		return all
	}
	return v
}
