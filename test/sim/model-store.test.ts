import { test } from 'vitest';
import { ModelHandle, ModelPlace } from '../../sim/model-store.mjs';
import * as checks from '../../src/store/assert-change.ts';
import { StoreFault } from '../../src/store/port.ts';
import { exerciseStore } from '../../src/testing/exercise-store.ts';

const places = new Map<string, ModelPlace>();

for (const { name, run } of exerciseStore({
  name: 'model',
  isDurable: true,
  async open(place) {
    const shared = places.get(place) ?? new ModelPlace();
    places.set(place, shared);
    return new ModelHandle(shared, { ...checks, StoreFault });
  },
  async remove(place) {
    places.delete(place);
  },
})) {
  test(name, run);
}
