import { createClient } from '@hey-api/openapi-ts'

const [input = '', output = ''] = process.argv.slice(2)

/** Generates a client that sends an int64 as a bigint, and validates requests and answers by zod. */
await createClient({
  input,
  output,
  logs: { file: false },
  plugins: [
    '@hey-api/client-fetch',
    '@hey-api/transformers',
    'zod',
    { name: '@hey-api/sdk', transformer: true, validator: true },
  ],
})
