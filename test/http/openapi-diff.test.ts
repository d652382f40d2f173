import { expect, test } from 'bun:test'
import { openApiDocument } from '../../src/http/docs/document.ts'
import reviewed from './openapi.json'

/** For reviewers, who see each change of the document. It proves nothing, so `bun run mutate` does not count it. */
test('is the OpenAPI document that was reviewed: bun src/main.ts openapi > test/http/openapi.json', async () => {
  expect(JSON.parse(JSON.stringify(await openApiDocument(undefined)))).toEqual(reviewed)
})
