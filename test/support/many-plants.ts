import { Database } from 'bun:sqlite'

/** Gives every user of a database plants with the ids from 1 to `count`, at once. */
export function addPlants(database: string, count: number): void {
  using db = new Database(database)
  db.run('pragma busy_timeout = 20000')
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?1)
     insert into plants (user_id, id, name, tag)
     select users.id, series.id, 'Monstera ' || series.id, iif(series.id % 2, null, 'evergreen') from users, series`,
    [count],
  )
}
