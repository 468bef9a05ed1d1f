"""What the join of vsc is compared with: each module measures one way to do it, in a Spark session it is given."""
