"""The frozen types that pass between the stages (Spec, Graph, Derivation, Program) and the data Regime and Convention."""
