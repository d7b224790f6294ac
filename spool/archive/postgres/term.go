package postgres

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// A term stands for one text of a record in one column: a hash of the account, the column, the metadata key if it is a value of one, and
// the text. One index over all terms of a record answers "is" and "in" on every text field, within one account, whatever the texts hold.
// Hashes of 64 bits meet by chance once in millions of years of writing; whoever makes them meet on purpose deceives their own account.

// term makes a term.
func term(account string, c archive.Column, key, text string) int64 {
	h := fnv.New64a()
	var head [24]byte
	head[0] = byte(c)
	binary.LittleEndian.PutUint64(head[8:], uint64(len(account)))
	binary.LittleEndian.PutUint64(head[16:], uint64(len(key)))
	_, _ = h.Write(head[:])
	_, _ = h.Write([]byte(account))
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte(text))
	return int64(h.Sum64())
}

// These stand for more than one column tells by itself.
const (
	metadataKeys     = archive.ColumnBody + 1 + iota // the keys of the metadata, as ColumnMetadata with a key is that key's value
	scoreValues                                      // a score, with its name as the key, or without
	templateVersions                                 // a version, with the template's name as the key
	days                                             // the day of the order time, UTC, since 1970
	hiddenMetadata                                   // a metadata value that the record has and does not show, with its key
)

// termColumns are the columns whose texts have terms.
const termColumns = 1<<archive.ColumnFunction | 1<<archive.ColumnModel | 1<<archive.ColumnProvider | 1<<archive.ColumnStatus | 1<<archive.ColumnSidecar |
	1<<archive.ColumnTemplate | 1<<archive.ColumnLabel | 1<<archive.ColumnTags | 1<<archive.ColumnGroups | 1<<archive.ColumnMetadata | 1<<archive.ColumnScores |
	1<<archive.ColumnTools | 1<<archive.ColumnFinish | 1<<archive.ColumnErrorType

// daysMax is how many days may be asked for by their terms: each costs as much as a term with as many records.
const daysMax = 3

// dayTerms are the terms of the days between two order times, both included; nil if they are too many.
func dayTerms(account string, oldest, newest int64) (terms []int64) {
	first, last := dayOf(oldest), dayOf(newest)
	if last-first >= daysMax {
		return nil
	}
	for day := first; day <= last; day++ {
		terms = append(terms, term(account, days, "", strconv.FormatInt(day, 10)))
	}
	return terms
}

func dayOf(at int64) int64 { return at / int64(24*time.Hour) }

// withHidden adds the terms of metadata values that the record has and its row does not show.
func withHidden(terms []int64, r *record) []int64 {
	for _, m := range r.state.Hidden() {
		terms = append(terms, term(r.account, hiddenMetadata, m.Key, archive.Shortened(m.Key, m.Value)))
	}
	return distinct(terms)
}

// wordsOf are the texts of a row that match in any case.
func wordsOf(row *wire.Row) map[archive.Column]string {
	return map[archive.Column]string{
		archive.ColumnProvider:  row.Provider,
		archive.ColumnStatus:    row.Status,
		archive.ColumnFinish:    row.FinishReason,
		archive.ColumnErrorType: row.ErrorType,
	}
}

// termsOf are the terms of a row, each once.
func termsOf(account string, row *wire.Row) []int64 {
	terms := termsAsSent(account, row)
	for c, text := range wordsOf(row) {
		if lower := strings.ToLower(text); text != lower && text != strings.ToUpper(lower) {
			terms = append(terms, term(account, c, "", lower)) // see archive.Spellings
		}
	}

	return distinct(terms)
}

// termsAsSent are the terms of a row's texts as they came, each once: all that earlier versions stored.
func termsAsSent(account string, row *wire.Row) []int64 {
	day := nanosOf(row.AcceptedAt)
	terms := append(make([]int64, 0, 20), dayTerms(account, day, day)...)
	add := func(c archive.Column, key string, texts ...string) {
		for _, text := range texts {
			terms = append(terms, term(account, c, key, text))
		}
	}
	// Of these an empty text is none.
	some := func(c archive.Column, text string) {
		if text != "" {
			add(c, "", text)
		}
	}
	some(archive.ColumnFunction, row.FunctionName)
	some(archive.ColumnModel, row.Engine)
	some(archive.ColumnSidecar, row.Sidecar)
	for c, text := range wordsOf(row) {
		some(c, text)
	}
	if row.PromptName != nil {
		add(archive.ColumnTemplate, "", *row.PromptName)
	}
	if row.PromptLabel != nil {
		add(archive.ColumnLabel, "", *row.PromptLabel)
	}
	if row.PromptName != nil && row.PromptVersion != nil {
		add(templateVersions, *row.PromptName, strconv.Itoa(*row.PromptVersion))
	}
	add(archive.ColumnTags, "", row.Tags...)
	add(archive.ColumnGroups, "", row.GroupIDs...)
	add(archive.ColumnTools, "", row.ToolNames...)
	for _, m := range row.Metadata {
		add(archive.ColumnMetadata, m.Key, m.Value)
		add(metadataKeys, "", m.Key)
	}
	for _, s := range row.Scores {
		value := strconv.Itoa(s.Score)
		add(archive.ColumnScores, "", s.Name)
		add(scoreValues, s.Name, value)
		add(scoreValues, "", value)
	}
	return distinct(terms)
}
