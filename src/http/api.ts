// Tested in test/http/openapi.test.ts.
import { Elysia } from 'elysia'
import type { Services } from './options.ts'
import { plants } from './plants.ts'
import { token } from './token.ts'

/** The routes that need a token, and that the OpenAPI document describes. */
export const api = (services: Services) => new Elysia({ name: 'api' }).use(plants(services)).use(token(services))
