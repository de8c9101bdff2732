"""Small charts of Homeport under the names of the vendor's, for simulated clusters."""
