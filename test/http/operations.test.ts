import { expect, test } from 'bun:test'
import { operationNames, operationsOf } from '../../src/http/operations.ts'

const route = (method: string, path: string, operationId?: string) => ({
  method,
  path,
  hooks: { detail: operationId === undefined ? {} : { operationId } },
})
const ROUTES = [
  route('GET', '/plants', 'listPlants'),
  route('OPTIONS', '/plants'),
  route('ALL', '/plants'),
  route('DELETE', '/plants/:id', 'deletePlant'),
  route('GET', '/docs', 'docs'),
  route('GET', '/docs/scalar.js', 'docs'),
]

test('the names of operations are those of the routes, each once, and other', () => {
  expect(operationNames(ROUTES)).toEqual(['listPlants', 'deletePlant', 'docs', 'other'])
})

test.each(['http://localhost', 'https://a:3000', 'http://[::1]:1', 'http://a', ''])(
  'the operation of a request to %p follows from its method and path, whatever its query is',
  (origin) => {
    const operations = {
      listPlants: ['GET /plants', 'GET /plants?limit=1', 'HEAD /plants?', 'GET /plants?/x'],
      deletePlant: ['DELETE /plants/1', 'DELETE /plants/%2F?a=/'],
      docs: ['GET /docs', 'HEAD /docs/scalar.js?a'],
      other: ['PUT /plants', 'OPTIONS /plants', 'GET /plants/1', 'DELETE /plants', 'DELETE /plants/', 'get /plants']
        .concat(['DELETE /plants/1/2', 'GET /', 'GET //plants', 'GET /plantsx', 'GET /x/plants', 'GET /?/plants'])
        .concat(['GET /__proto__']),
    }
    for (const [operation, requests] of Object.entries(operations)) {
      for (const request of requests) {
        const [method = '', target = ''] = request.split(' ')
        expect([request, operationsOf(ROUTES)(method, origin + target)]).toEqual([request, operation])
      }
    }
  },
)
