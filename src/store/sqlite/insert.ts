/** The statement that inserts one row, with a parameter for each column. */
export const insertInto = (table: string, columns: readonly string[]): string =>
  `insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`
