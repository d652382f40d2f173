import { expect } from 'bun:test'
import type { OpenAPIV3 } from 'openapi-types'
import { openApiDocument } from '../../../src/http/docs/document.ts'
import type { Answer } from './service.ts'

const { paths, components } = await openApiDocument(undefined)
const HEADERS = (components?.headers ?? {}) as Record<string, OpenAPIV3.HeaderObject>
const RUNTIME_HEADERS = ['date', 'content-length', 'content-type', 'transfer-encoding', 'connection', 'keep-alive']

/** The operation of a request, if the document has one. */
export const operationOf = (method: string, path: string) =>
  Object.entries(paths[path.replace(/\?.*/, '').replace(/^\/plants\/[^/]+/, '/plants/{id}')] ?? {}).find(
    ([name]) => name === method.toLowerCase(),
  )?.[1] as OpenAPIV3.OperationObject | undefined

/** Expects that the document describes the status, headers, code and body of an answer, and that it has each required header. */
export function expectDescribed(method: string, path: string, answer: Answer, name = `${method} ${path}`): void {
  const { responses } = operationOf(method, path) ?? { responses: {} }
  expect({ name, ...differences(responses, answer) }).toEqual({ name, missing: [], undescribed: [] })
}

function differences(responses: OpenAPIV3.ResponsesObject, { status, headers, text, body }: Answer) {
  const response = responses[status] as OpenAPIV3.ResponseObject | undefined
  const said = Object.entries(response?.headers ?? {}) as [string, OpenAPIV3.ReferenceObject][]
  const isRequired = ({ $ref }: OpenAPIV3.ReferenceObject) => HEADERS[$ref.split('/').at(-1) ?? '']?.required
  const own = [...headers.keys()].filter((name) => !RUNTIME_HEADERS.includes(name))
  const errors = (response?.content?.['application/json']?.examples ?? {}) as Record<string, OpenAPIV3.ExampleObject>
  const isKnown = status < 400 || Object.values(errors).some(({ value }) => value.error === body.error)
  return {
    missing: said.filter(([name, header]) => isRequired(header) && !headers.has(name)).map(([name]) => name),
    undescribed: [
      ...own.filter((name) => !said.some(([header]) => header.toLowerCase() === name)),
      ...(response === undefined ? [status] : []),
      ...(isKnown ? [] : [body.error]),
      ...((text === '') === (response?.content === undefined) ? [] : ['body']),
    ],
  }
}
