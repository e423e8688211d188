"""`projection`: Gaussian noise on one's own queries, then the answers of one distribution that is near to them."""
