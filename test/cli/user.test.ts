import { expect, test } from 'bun:test'
import { serve } from '../support/executable.ts'
import { MEMORY } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'
import { makeDatabase } from './support/database.ts'
import { answerOf } from './support/service-client.ts'

test('user delete ends when a server refuses the tokens, also if it has just answered a cached list', async () => {
  using made = makeDatabase(MEMORY)
  await using server = await serve(made.database)
  // After a list the server trusts its caches for some milliseconds. Many users, because a slow exit can hide this.
  for (const user of Array.from({ length: 10 }, (_, index) => `user-${index}`)) {
    const token = await createTokenIn(made.database, user)
    let isDeleting = true
    const deleting = made.run('user', 'delete', user, '--yes').finally(() => {
      isDeleting = false
    })
    while (isDeleting) await answerOf(server.request('GET', '/plants?limit=5', { token }))

    expect(await deleting).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(`\nDeleted user ${user} with 1 token and 0 plants.`),
    })
    expect(await answerOf(server.request('GET', '/plants?limit=5', { token }))).toMatchObject({ status: 401 })
  }
})
