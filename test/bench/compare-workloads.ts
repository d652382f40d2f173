import type { Content } from './databases.ts'
import { createLoad, type Load, listLoad, mixLoad } from './load/wrk.ts'

/** The two executables of a comparison. */
export const COMPARED = ['OLD', 'NEW'] as const

/** A load on a database, under which two executables are compared. */
export interface Workload {
  readonly name: string
  readonly title: string
  readonly content: Content
  /** Makes the load of one server. */
  readonly load: (tokensFile: string) => Load
}

const ONE_USER: Content = { users: 1, plantsPerUser: 1000 }

const creates = (connections: number): Workload => ({
  name: `create-${connections}`,
  title: `create, one user, ${connections} ${connections === 1 ? 'connection' : 'connections'}, durable`,
  content: ONE_USER,
  load: (tokensFile) => createLoad(tokensFile, connections),
})

/** All workloads, in the order in which they run. */
export const WORKLOADS: readonly Workload[] = [
  creates(1),
  creates(4),
  creates(64),
  { name: 'list', title: 'list of 20, one user, 64 connections', content: ONE_USER, load: listLoad },
  {
    name: 'list-users',
    title: 'list of 20, 10 000 users in random order, 64 connections',
    content: { users: 10_000, plantsPerUser: 100 },
    load: listLoad,
  },
  {
    name: 'mix',
    title: '90 % list of 20, 10 % create, 1 000 users in random order, 64 connections',
    content: { users: 1000, plantsPerUser: 100 },
    load: mixLoad,
  },
]
