import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'

test('a server that ends closes the connection also after a list that it remembers', async () => {
  using folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const token = await createTokenIn(database)
  await using server = await serve(database, ['--drain-wait', '5s'])
  const ask = async () => {
    const { status, headers } = await server.request('GET', '/plants?limit=5', { token })
    return [status, headers.get('connection')]
  }
  for (let count = 0; count < 2; count++) expect(await ask()).not.toContain('close')

  server.signal('SIGTERM')
  while (!server.stdout().includes('"ending"')) await Bun.sleep(5)

  for (let count = 0; count < 2; count++) expect(await ask()).toEqual([200, 'close'])
})
