import type { Static, TSchema } from '@sinclair/typebox'

/**
 * Has Elysia check the values of a query or a path with `check`, while the schema describes them to TypeScript and to the
 * OpenAPI document. Elysia's own check would coerce (`0x10`, ` 5`), take the last of repeated values, and echo what was sent. It
 * prefers Standard Schema (https://standardschema.dev), and what `check` throws reaches `onError` as it is. The property
 * is not enumerable, so that the document does not show it.
 */
export function checkedBy<Schema extends TSchema>(
  schema: Schema,
  check: (values: Readonly<Record<string, unknown>>) => Static<Schema>,
): Schema {
  const validate = (values: unknown) => ({ value: check(values as Readonly<Record<string, unknown>>) })
  return Object.defineProperty(schema, '~standard', { value: { version: 1, vendor: 'plantstore', validate } })
}
