import { expect, test } from 'bun:test'
import { operationNames, operationsOf, pathOf } from '../../src/http/operations.ts'

const route = (method: string, path: string, operationId?: string) => ({
  method,
  path,
  hooks: { detail: operationId === undefined ? {} : { operationId } },
})
const ROUTES = [
  route('GET', '/plants', 'listPlants'),
  route('HEAD', '/plants', 'listPlants'),
  route('POST', '/plants', 'createPlant'),
  route('OPTIONS', '/plants'),
  route('ALL', '/plants'),
  route('DELETE', '/plants/:id', 'deletePlant'),
  route('GET', '/healthz', 'health'),
  route('GET', '/readyz', 'ready'),
  route('GET', '/docs', 'docs'),
  route('GET', '/docs/scalar.js', 'docs'),
  route('GET', '/openapi.json', 'docs'),
]
const operationOf = operationsOf(ROUTES)

test('the names of operations are those of the routes, each once, and other', () => {
  expect(operationNames(ROUTES)).toEqual([
    'listPlants',
    'createPlant',
    'deletePlant',
    'health',
    'ready',
    'docs',
    'other',
  ])
})

const ORIGINS = ['http://localhost', 'https://a:3000', 'http://[::1]:1', 'http://a', '']

test.each(ORIGINS)(
  'the operation of a request to %p follows from its method and path, whatever its query is',
  (origin) => {
    const operations = {
      'GET /plants': 'listPlants',
      'GET /plants?limit=1': 'listPlants',
      'HEAD /plants?': 'listPlants',
      'POST /plants': 'createPlant',
      'POST /plants?/x': 'createPlant',
      'DELETE /plants/1': 'deletePlant',
      'DELETE /plants/%2F?a=/': 'deletePlant',
      'GET /healthz': 'health',
      'HEAD /readyz?a': 'ready',
      'GET /docs': 'docs',
      'GET /docs/scalar.js': 'docs',
      'GET /openapi.json': 'docs',
    }
    for (const [request, operation] of Object.entries(operations)) {
      const [method = '', target = ''] = request.split(' ')
      expect([request, operationOf(method, origin + target)]).toEqual([request, operation])
    }
  },
)

test.each(ORIGINS)('the operation of a request to %p that no route takes is other', (origin) => {
  const requests = ['PUT /plants', 'OPTIONS /plants', 'GET /plants/1', 'DELETE /plants', 'DELETE /plants/']
    .concat(['DELETE /plants/1/2', 'GET /', 'GET //plants', 'GET /Plants', 'GET /plantsx', 'GET /x/plants'])
    .concat(['GET /__proto__', 'POST /healthz', 'POST /plants/', 'get /plants', 'GET /?/plants'])
  for (const request of requests) {
    const [method = '', target = ''] = request.split(' ')
    expect([request, operationOf(method, origin + target)]).toEqual([request, 'other'])
  }
})

test('the path of a URL lies between its host and its query', () => {
  const paths = ['http://a/b/c?d=/e', 'https://a:1/b/c', '/b/c?d', 'http://a/?', 'http://a/'].map(pathOf)

  expect(paths).toEqual(['/b/c', '/b/c', '/b/c', '/', '/'])
})
