import { type NewPlant, type Plant, toPlant } from '../../../src/domain/plant.ts'
import type { Scope } from '../../../src/domain/token.ts'
import { type Asked, expectedList, type Model } from '../support/list-model.ts'

/** The user and the scope of the token of a request. */
export interface Who {
  readonly user: string
  readonly scope: Scope
}

/** An answer as far as the model knows it. */
export interface Expected {
  readonly status: number
  /** The plants, or the code of a refusal. */
  readonly body?: Plant | readonly Plant[] | number
  readonly link: string | null
}

/** A model of the service: the plants of its users, and the answer to each request. */
export function createModel() {
  const plants = new Map<string, Model<Plant>>()
  const plantsOf = (user: string): Model<Plant> => plants.getOrInsertComputed(user, () => new Map())
  return {
    create({ user, scope }: Who, plant: NewPlant): Expected {
      if (scope === 'read') return refusal(40301)
      if (plantsOf(user).has(plant.id)) return refusal(40901)
      plantsOf(user).set(plant.id, toPlant(plant))
      return { status: 200, body: toPlant(plant), link: null }
    },
    delete({ user, scope }: Who, id: bigint): Expected {
      if (scope === 'read') return refusal(40301)
      return plantsOf(user).delete(id) ? { status: 204, link: null } : refusal(40402)
    },
    list({ user }: Who, asked: Asked): Expected {
      const { shown, link } = expectedList(plantsOf(user), asked)
      return { status: 200, body: shown, link }
    },
  }
}

const refusal = (code: number): Expected => ({ status: Math.floor(code / 100), body: code, link: null })
