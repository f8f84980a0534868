// What adapters of the two ports are held to, published: each suite is a list of named cases that any runner runs.

export {
  type DestinationCase,
  type DestinationFault,
  type DestinationHarness,
  type DestinationUnderTest,
  exerciseDestination,
} from './exercise-destination.ts';
export { exerciseStore, type StoreCase, type StoreUnderTest } from './exercise-store.ts';
