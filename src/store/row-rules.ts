// Tested in test/store/copy.test.ts.
import { TIME_MAX_MS, USER_NAME_CHARACTERS, USER_NAME_LENGTH_MAX, USER_NAME_RULE } from '../domain/token.ts'
import { COLUMNS, TABLES } from './tables.ts'

/** A rule in words, and the SQL that continues a column which breaks it. */
export interface Rule {
  readonly words: string
  readonly isBrokenBy: (column: string) => string
}

const between = (first: number, last: number): Rule => ({
  words: `between ${first} and ${last}`,
  isBrokenBy: (column) => `${column} not between ${first} and ${last}`,
})

const TIME = between(-TIME_MAX_MS, TIME_MAX_MS)
/** The last identifier that a store has used. As many are left after it. */
export const LAST_ID_MAX = 2 ** 52
const IDENTIFIER = between(1, Number.MAX_SAFE_INTEGER)
const NAME: Rule = {
  words: USER_NAME_RULE,
  // Nothing is left of a name after `trim` if all its characters may be in a name.
  isBrokenBy: (column) =>
    `(trim(${column}, '${USER_NAME_CHARACTERS}') <> '' or octet_length(${column}) not between 1 and ${USER_NAME_LENGTH_MAX})`,
}

/** The rules that no database enforces. A null keeps each of them. */
const RULES: Readonly<Record<string, Readonly<Record<string, Rule>>>> = {
  users: { id: IDENTIFIER, name: NAME, created_at_ms: TIME, blocked_at_ms: TIME },
  tokens: { id: IDENTIFIER, created_at_ms: TIME, expires_at_ms: TIME, revoked_at_ms: TIME, last_used_at_ms: TIME },
}

/** A statement about a column finds at most so many rows, as `pragma integrity_check` does, and shows so much of a value. */
export const FOUND_MAX = 100
const SHOWN_LENGTH = 100

/**
 * Statements for every database that find the rows which belong to no user or break a rule: a line for each row and rule.
 * `prefix` stands before the names of the tables, and `text` is the rule of all other texts. Missing columns are left out.
 */
export const findRuleBreaks = (prefix: string, text?: Rule, hasColumn = (_table: string, _column: string) => true) => [
  ...['tokens', 'plants'].map(
    (table) => `select 'a row of ${table} belongs to no user' from ${prefix}${table}
      where not exists (select 1 from ${prefix}users where users.id = ${table}.user_id)`,
  ),
  ...TABLES.flatMap((table) =>
    Object.entries(COLUMNS[table]).flatMap(([column, type]) => {
      const rule = RULES[table]?.[column] ?? (type === 'text' ? text : undefined)
      if (rule === undefined || !hasColumn(table, column)) return []
      const owner = table === 'plants' ? ` || ' of user ' || cast(user_id as text)` : ''
      return `select '${table.slice(0, -1)} ' || cast(id as text)${owner} || ': ${column} "' ||
           substr(cast(${column} as text), 1, ${SHOWN_LENGTH}) || '" is not ${rule.words}'
         from ${prefix}${table} where ${rule.isBrokenBy(column)} limit ${FOUND_MAX}`
    }),
  ),
]
